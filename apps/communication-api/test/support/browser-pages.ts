import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterEach, expect } from 'vitest';
import { launchBrowser } from './chromium.ts';
import { cleanUpLater } from './clean-up.ts';

/** Opens a page with cookies and an address of its own, since forms are counted by address. It is closed after the test. */
export type OpenPage = (options?: BrowserContextOptions) => Promise<Page>;

/**
 * Starts a browser, which ends after the test file. A test fails if the policy of a page has blocked something of ours.
 * @param options of Chromium
 */
export async function startBrowser(options: readonly string[] = []): Promise<OpenPage> {
  const browser = await launchBrowser(options);
  cleanUpLater(() => browser.close());
  const contexts: BrowserContext[] = [];
  const blocked: string[] = [];
  let clients = 0;
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
    expect(blocked.splice(0)).toEqual([]);
  });
  return async (options = {}) => {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      locale: 'en-GB',
      ...options,
      extraHTTPHeaders: { 'x-forwarded-for': `192.0.2.${++clients}` },
    });
    context.setDefaultTimeout(25_000);
    context.on('console', (message) => {
      if (message.text().includes('Content Security Policy')) blocked.push(message.text());
    });
    contexts.push(context);
    return context.newPage();
  };
}
