import { readFileSync } from 'node:fs';

// The sources and the built file are one folder below it.
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};

/** The version of the service. */
export const VERSION = version;
