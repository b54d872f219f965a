import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterEach, expect } from 'vitest';

/** Opens a page with its own cookies and address, since forms are counted by address. It is closed after the test. */
export type OpenPage = (options?: BrowserContextOptions) => Promise<Page>;

/** Opens pages in a browser. A test fails if a page reports an error or breaks its Content Security Policy. */
export function openPages(browser: Browser): OpenPage {
  const contexts: BrowserContext[] = [];
  const faults: string[] = [];
  let clients = 0;
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
    expect(faults.splice(0)).toEqual([]);
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
      if (message.text().includes('Content Security Policy')) faults.push(message.text());
    });
    context.on('weberror', (error) => faults.push(String(error.error())));
    contexts.push(context);
    return context.newPage();
  };
}
