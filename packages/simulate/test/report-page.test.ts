/** The page of `headgate simulate --html`, opened from its file. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launchBrowser } from 'headgate-testbed/chromium';
import { checkPage } from 'headgate-testbed/page-checks';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { simulate } from '../src/index.ts';
import { reportHtml } from '../src/report-html.ts';
import { STYLE, STYLE_HASH } from '../src/report-style.ts';

const START = Date.UTC(2026, 0, 1);
const HOSTILE = '</td><script>document.title="run"</script><img src="http://127.0.0.1:9/x" onerror="document.title=1">';
const folder = mkdtempSync(join(tmpdir(), 'headgate-report-'));
const file = join(folder, 'report.html');
const browser = await launchBrowser();

beforeAll(async () => {
  const trace = Array.from({ length: 600 }, (_, i) => ({
    at: START + i * 1_000,
    account: i % 3 === 0 ? HOSTILE : `account_${i % 2}`,
    route: i % 2 === 0 ? 'GET /chats/{id}' : 'POST /emails',
    provider: 'linkedin',
  }));
  const report = await simulate({
    current: { limits: { allMethods: ['12/1m'] } },
    candidate: { limits: { allMethods: ['6/1m', '60/1h'], routes: { 'POST /emails': ['20/1m'] } } },
    trace,
  });
  expect(report.accountsNewlyRejected).toBeGreaterThan(1);
  writeFileSync(file, reportHtml(report, 'Simulated limits: now.json and new.json'));
});

afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

it.each([
  [1_280, 'light'],
  [375, 'dark'],
] as const)('is one file without scripts that everybody can read, %i px wide, %s', async (width, colorScheme) => {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
  const page = await context.newPage();
  const requests: string[] = [];
  const messages: string[] = [];
  page.on('request', (request) => void requests.push(request.url()));
  page.on('console', (message) => void messages.push(message.text()));
  const url = pathToFileURL(file).href;
  await page.goto(url);
  expect(await page.locator('script, img, iframe, link, object, [style]').count()).toBe(0);
  // The policy lets the style through: the body has no margin.
  expect(await page.evaluate(() => getComputedStyle(document.body).margin)).toBe('0px');
  expect(await page.getByRole('rowheader', { name: '</td><script>' }).count()).toBe(1);
  await checkPage(page, 'en');
  expect(await page.title()).toBe('Simulated limits: now.json and new.json');
  expect({ requests, messages }).toEqual({ requests: [url], messages: [] });
  await context.close();
});

it('has the hash of its style in its policy', () => {
  expect(STYLE_HASH).toBe(`sha256-${createHash('sha256').update(STYLE).digest('base64')}`);
});
