import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findOrInstall } from 'headgate-testbed/find-program';
import { temporaryFolder } from './temporary-folder.ts';

const LIBRARIES = '/usr/lib';

/** A wall clock that can be stepped while a process runs. Its monotonic clock continues, as on a real machine. */
export interface SteppedClock {
  /** Of the process. */
  readonly environment: Readonly<Record<string, string>>;
  /** @param offset from the real time, such as `+2h` */
  set(offset: string): void;
}

/** Prepares libfaketime. */
export function steppedClock(): SteppedClock {
  const library = findOrInstall(
    () =>
      readdirSync(LIBRARIES)
        .map((folder) => join(LIBRARIES, folder, 'faketime/libfaketimeMT.so.1'))
        .find((path) => existsSync(path)),
    'libfaketime',
    'This test needs libfaketime: install it, or run as root on Debian.',
  );
  const file = join(temporaryFolder(), 'clock');
  const set = (offset: string): void => writeFileSync(file, offset);
  set('+0');
  return {
    environment: {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
    set,
  };
}
