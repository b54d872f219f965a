import { findChromium } from './chromium.ts';

/** Installs Chromium before the first test, if it is missing: a test has too little time for that. */
export function setup(): void {
  findChromium();
}
