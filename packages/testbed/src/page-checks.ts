import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { html: string; failureSummary: string }[];
  }[];
}

/**
 * Checks a page of the wizard: axe finds nothing, there is one main heading in the right language, and nothing has to be
 * scrolled sideways, also if the text is twice as large. With the variable SCREENSHOTS, a folder, it saves a picture.
 * @returns the heading
 */
export async function checkPage(page: Page, language: string): Promise<string> {
  const heading = (await page.textContent('h1')) ?? '';
  expect(await page.getAttribute('html', 'lang')).toBe(language);
  expect(await page.locator('h1').count()).toBe(1);
  await page.evaluate(AXE);
  const faults = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(): Promise<AxeResult> } };
    const { violations } = await axe.run();
    return violations.map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]);
  });
  expect([heading, faults]).toEqual([heading, []]);
  await savePicture(page, heading);
  for (const size of ['', '200%']) expect([heading, size, await overflowAt(page, size)]).toEqual([heading, size, 0]);
  return heading;
}

/** By how many pixels a page is too wide at a text size. */
const overflowAt = (page: Page, fontSize: string): Promise<number> =>
  page.evaluate((size) => {
    const root = document.documentElement;
    root.style.fontSize = size;
    const overflow = Math.max(0, root.scrollWidth - innerWidth);
    root.style.fontSize = '';
    return overflow;
  }, fontSize);

async function savePicture(page: Page, heading: string): Promise<void> {
  const { SCREENSHOTS } = process.env;
  if (SCREENSHOTS === undefined) return;
  const { width } = page.viewportSize() ?? { width: 0 };
  const name = heading.replace(/[^\p{L}\d]+/gu, '-').toLowerCase();
  const open = (await page.locator('details[open]').count()) > 0 ? '-open' : '';
  const dialog = (await page.locator('dialog[open]').count()) > 0 ? '-dialog' : '';
  const state = (await page.locator('.summary').count()) > 0 ? '-faults' : open + dialog;
  const colours = (await page.evaluate(() => matchMedia('(prefers-color-scheme: dark)').matches)) ? 'dark' : 'light';
  await page.screenshot({ path: join(SCREENSHOTS, `${width}-${colours}-${name}${state}.png`), fullPage: true });
}
