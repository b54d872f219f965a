import { findChromium } from './chromium.ts';

/**
 * Finds or installs Chromium before the first test: a test has too little time for that. The tests inherit the result.
 */
export function setup(): void {
  process.env.CHROMIUM_BIN = findChromium();
}
