import { launchBrowser } from 'headgate-testbed/chromium';
import { type OpenPage, openPages } from 'headgate-testbed/open-pages';
import { cleanUpLater } from './clean-up.ts';

/**
 * Starts a browser, which ends after the test file.
 * @param options of Chromium
 */
export async function startBrowser(options: readonly string[] = []): Promise<OpenPage> {
  const browser = await launchBrowser(options);
  cleanUpLater(() => browser.close());
  return openPages(browser);
}
