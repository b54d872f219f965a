import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { findOrInstall, foldersOnPath, isOnPath } from '../../../../test/support/find-program.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

const ARGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

let found: string | undefined;

/**
 * The Chromium to run: CHROMIUM_BIN, the one on the PATH, or one that is installed now, if this process may do so.
 * @throws Error if none is found: tests that need a browser must not be left out silently
 */
export function findChromium(): string {
  found ??=
    process.env.CHROMIUM_BIN ??
    findOrInstall(
      // Playwright needs the whole path. A file that does not run is a hint to install Chromium, not Chromium.
      () =>
        foldersOnPath()
          .flatMap((folder) => NAMES.map((name) => join(folder, name)))
          .find(isOnPath),
      'chromium',
      'The tests need Chromium: install chromium, or set CHROMIUM_BIN.',
    );
  return found;
}

/** Starts a browser, which the caller closes. */
export function launchBrowser(options: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: [...ARGS, ...options] });
}
