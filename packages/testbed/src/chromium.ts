import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { findOrInstall, foldersOnPath, isOnPath } from './find-program.ts';

/** Chromium without a window: the same pages take 40 % less CPU time than in the whole browser. */
const HEADLESS = 'chromium-headless-shell';

/** Browsers that do as well, if Chromium's shell cannot be installed. */
const OTHERS = ['chromium', 'chromium-browser', 'google-chrome'];

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
 * The Chromium to run: CHROMIUM_BIN, or `chromium-headless-shell`, which is installed now if this process may do so, or
 * another Chromium on the PATH.
 * @throws Error if no browser is found: tests that need a browser must not be left out silently
 */
export function findChromium(): string {
  found ??=
    process.env.CHROMIUM_BIN ??
    findOrInstall(
      () => onPath([HEADLESS]),
      HEADLESS,
      `The tests need Chromium: install ${HEADLESS}, or set CHROMIUM_BIN.`,
      () => onPath(OTHERS),
    );
  return found;
}

/** Playwright needs the whole path. A file that does not run is a hint to install Chromium, not Chromium. */
function onPath(names: readonly string[]): string | undefined {
  return foldersOnPath()
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(isOnPath);
}

/** Starts a browser, which the caller closes. */
export function launchBrowser(options: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: [...ARGS, ...options] });
}
