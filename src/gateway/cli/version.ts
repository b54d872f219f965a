declare const HEADGATE_VERSION: string | undefined;

/** Of the package; put in when it is bundled. */
export const version: string = typeof HEADGATE_VERSION === 'undefined' ? '0.0.0-source' : HEADGATE_VERSION;
