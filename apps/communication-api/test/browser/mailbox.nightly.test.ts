import { checkPage } from 'headgate-testbed/page-checks';
import { expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { clientOf } from '../support/client.ts';
import { peopleOf } from '../support/dashboard.ts';
import { startService } from '../support/service.ts';

const service = await startService({ TRUSTED_PROXIES: 'loopback' });
const { url, application, rooms } = service;
const { signedIn } = peopleOf(service);
const newPage = await startBrowser();

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const HTML = `<!doctype html><html><body style="font-family:sans-serif">
<h1 style="color:#036">Your order</h1>
<p id="out">It is on its way. <a href="${url}/healthz">Look at it</a></p>
<img id="own" width="20" height="20" alt="" src="data:image/png;base64,${PIXEL}">
<script>document.getElementById('out').textContent = 'script'</script>
<form action="https://evil.example/"><button>Send</button></form>
</body></html>`;

/** A browser of a member, and a mock account that sent three emails. */
async function viewed(colorScheme: 'light' | 'dark', width: number, bypassCSP: boolean) {
  const { id, token } = await application();
  const account = await linkAccount(rooms, id, { name: `${width}-${colorScheme}-${bypassCSP}@mock.test` });
  for (const [subject, body] of [
    ['Hello', 'Plain text only.'],
    [`Your order ${'1234567890'.repeat(6)}`, 'Long.'],
    ['Your order', HTML],
  ])
    await clientOf(url, token)('POST', '/api/v1/emails', {
      account_id: account.id,
      from: { display_name: 'Shop' },
      to: [{ identifier: 'ann@example.com', display_name: 'Ann' }],
      bcc: [{ identifier: 'archive@example.com' }],
      subject,
      body,
      attachments: [{ filename: 'invoice.pdf', content_type: 'application/pdf', content: 'aGVsbG8=' }],
    });
  const { cookie } = await signedIn('member');
  const page = await newPage({ bypassCSP, colorScheme, viewport: { width, height: 700 }, reducedMotion: 'reduce' });
  await page.context().addCookies([{ name: 'dashboard', value: cookie, url }]);
  return { page, path: `${url}/dashboard/applications/${id}/accounts/${account.id}` };
}

test.each([
  ['light', 1280],
  ['dark', 320],
] as const)('in %s colours, %i pixels wide, axe finds nothing on the pages of a mailbox', async (colours, width) => {
  // axe needs a script in the page.
  const { page, path } = await viewed(colours, width, true);
  await page.goto(`${path}/mailbox`);
  await page.waitForSelector('.rows');
  await checkPage(page, 'en');
  await page.click('text="Your order"');
  await page.waitForSelector('iframe');
  await checkPage(page, 'en');
  for (const summary of await page.locator('summary').all()) await summary.click();
  await checkPage(page, 'en');
});

test('the HTML of an email is shown, without its script and its form; a link opens a new tab', async () => {
  const { page, path } = await viewed('light', 1280, false);
  await page.goto(`${path}/mailbox`);
  await page.click('text="Your order"');
  const frame = page.frameLocator('iframe');
  expect(await frame.locator('#out').textContent()).toContain('It is on its way.');
  expect(await frame.locator('h1').evaluate((heading) => getComputedStyle(heading).color)).toBe('rgb(0, 51, 102)');
  await expect.poll(() => frame.locator('#own').evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBe(1);
  await frame.locator('button').click();
  const opened = page.context().waitForEvent('page');
  await frame.locator('a').click();
  const tab = await opened;
  await tab.waitForURL(`${url}/healthz`);
  expect(await tab.evaluate(() => [window.opener, document.referrer])).toEqual([null, '']);
  // The page and its frame are where they were.
  expect(await frame.locator('#out').textContent()).toContain('It is on its way.');
  expect(page.context().pages()).toHaveLength(2);
});
