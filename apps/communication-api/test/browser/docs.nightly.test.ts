import { launchBrowser } from 'headgate-testbed/chromium';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startService } from '../support/service.ts';

const service = await startService();
let browser: Awaited<ReturnType<typeof launchBrowser>>;
beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());

test('the reference page is shown without a request to elsewhere and without a breach of its policy', async () => {
  const page = await browser.newPage({ viewport: { width: 1280, height: 1600 } });
  const elsewhere: string[] = [];
  const faults: string[] = [];
  // Only this origin can be reached, as on a machine without a network.
  await page.route('**/*', (route) => {
    const url = route.request().url();
    if (url.startsWith(`${service.url}/`) || url.startsWith('data:')) return route.continue();
    elsewhere.push(url);
    return route.abort();
  });
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()));
  page.on('pageerror', (error) => faults.push(error.message));
  const answer = await page.goto(`${service.url}/docs`);
  const policy = answer?.headers()['content-security-policy'] ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);

  await page.getByRole('heading', { name: /^Communication API/ }).waitFor();
  await expect.poll(() => page.getByText('Idempotency', { exact: true }).count()).toBeGreaterThan(0);
  await expect.poll(() => page.locator('.servers option').allTextContents()).toEqual([service.url]);
  await page.locator('#operations-Emails-sendEmail').getByRole('button').first().click();
  await page.getByText('multipart/form-data').first().waitFor();
  await expect.poll(() => page.locator('#operations-Emails-sendEmail').innerText()).toContain('idempotency-key');
  await page.waitForLoadState('networkidle');
  const { SCREENSHOT } = process.env;
  if (SCREENSHOT !== undefined) await page.screenshot({ path: SCREENSHOT });
  expect(elsewhere).toEqual([]);
  expect(faults).toEqual([]);
});

test('a query does not disturb the reference page', async () => {
  const page = await browser.newPage();
  await page.goto(`${service.url}/docs?account_id=acc_1&state=x`);
  await page.getByRole('heading', { name: /^Communication API/ }).waitFor();
});

test('an operation can be tried on the reference page', async () => {
  const { token } = await service.application();
  const page = await browser.newPage({ viewport: { width: 1280, height: 1600 } });
  await page.goto(`${service.url}/docs`);
  await page.getByRole('button', { name: 'Authorize' }).first().click();
  const dialog = page.locator('.auth-container');
  await dialog.locator('input').fill(token);
  await dialog.getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.locator('.btn-done').click();
  const operation = page.locator('#operations-Accounts-listAccounts');
  await operation.getByRole('button').first().click();
  await operation.getByRole('button', { name: 'Try it out' }).click();
  await operation.getByRole('button', { name: 'Execute', exact: true }).click();
  await expect.poll(() => operation.locator('.live-responses-table').innerText()).toContain('"AccountList"');
});
