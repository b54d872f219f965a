import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { launchBrowser } from '../../../test/console/support/chromium.ts';
import { type Served, serveSite } from './serve.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A page, and what must not happen on it: errors, and requests to anywhere else. */
export interface Watched {
  readonly page: Page;
  /** Goes to a path of the site. */
  open(path: string): Promise<void>;
  /** What has happened since the last call. */
  faults(): readonly string[];
}

/** The site and a browser for the tests of a file. */
export function useSite(): { openPage(options?: BrowserContextOptions): Promise<Watched> } {
  let browser: Browser;
  let site: Served;
  beforeAll(async () => {
    [browser, site] = await Promise.all([launchBrowser(), serveSite()]);
  });
  afterAll(async () => {
    await browser.close();
    site.close();
  });
  return {
    async openPage(options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      const page = await context.newPage();
      const faults: string[] = [];
      page.on('pageerror', (error) => faults.push(`page error: ${error.message}`));
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') faults.push(`console: ${message.text()}`);
      });
      page.on('request', (request) => {
        const url = request.url();
        if (!url.startsWith(`${site.address}/`) && !url.startsWith('data:')) faults.push(`outside request: ${url}`);
      });
      page.on('response', (response) => {
        if (response.status() >= 400) faults.push(`${response.status()} ${response.url()}`);
      });
      return {
        page,
        open: async (path) =>
          void (await page.goto(site.address + path, { waitUntil: 'networkidle', timeout: 60_000 })),
        faults: () => faults.splice(0),
      };
    },
  };
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/** What axe finds on a page: the rule, and the first elements. */
export async function axeFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<AxeResult> } };
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations.map(
      ({ id, nodes }) => `${id} (${nodes.length}): ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary}`,
    );
  });
}
