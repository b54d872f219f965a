import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { launchBrowser } from 'headgate-testbed/chromium';
import type { Browser, BrowserContextOptions, Page, Request } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';
import { type Served, serveSite } from './serve.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A page, and what must not happen on it: errors, and requests to anywhere else. */
export interface Watched {
  readonly page: Page;
  /** Goes to a path of the site, until its page works. */
  open(path: string): Promise<void>;
  /** What has happened since the last call, once no request is under way. */
  faults(): Promise<readonly string[]>;
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
      const pending = new Set<Request>();
      page.on('requestfinished', (request) => pending.delete(request));
      page.on('requestfailed', (request) => pending.delete(request));
      page.on('request', (request) => {
        pending.add(request);
        const url = request.url();
        if (!url.startsWith(`${site.address}/`) && !url.startsWith('data:')) faults.push(`outside request: ${url}`);
      });
      page.on('response', (response) => {
        if (response.status() >= 400) faults.push(`${response.status()} ${response.url()}`);
      });
      const settle = async (): Promise<void> => {
        while (pending.size > 0) await new Promise((resolve) => setTimeout(resolve, 20));
      };
      return {
        page,
        open: async (path) => {
          await page.goto(site.address + path, { timeout: 60_000 });
          // Vue marks the element that it has mounted on. Until then, the page is only its HTML.
          await page.waitForFunction(() => '__vue_app__' in (document.querySelector('#app') ?? {}));
        },
        faults: async () => {
          await settle();
          return faults.splice(0);
        },
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

/** What axe finds on a page: the rule, and the first elements. Highlighted code has fewer elements afterwards. */
export async function axeFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  await page.evaluate(mergeTokens);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<AxeResult> } };
    const { violations } = await axe.run({ resultTypes: ['violations'] });
    return violations.map(
      ({ id, nodes }) => `${id} (${nodes.length}): ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary}`,
    );
  });
}

/**
 * Leaves one token of each look in the highlighted code of a page; the others become plain text in their line. So axe
 * judges every color on its background once, and not each of a thousand words. That halves its time.
 */
function mergeTokens(): void {
  const looks = new Set<string>();
  for (const token of document.querySelectorAll('.vp-code .line > span[style]')) {
    if (token.children.length > 0 || token.attributes.length > 1) continue;
    let look = token.getAttribute('style') ?? '';
    for (let each = token.parentElement; each !== null; each = each.parentElement) look += `|${each.className}`;
    if (looks.has(look)) token.replaceWith(...token.childNodes);
    else looks.add(look);
  }
}
