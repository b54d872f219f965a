declare const HEADGATE_VERSION: string | undefined;

/** The version of the package, put in by the build. */
export const version: string = typeof HEADGATE_VERSION === 'undefined' ? '0.0.0-source' : HEADGATE_VERSION;
