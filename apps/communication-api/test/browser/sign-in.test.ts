import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchBrowser } from '../support/chromium.ts';
import { freePort } from '../support/free-port.ts';
import { startGoogle } from '../support/google.ts';
import { startMicrosoft } from '../support/microsoft.ts';
import { checkPage } from '../support/page-checks.ts';
import { startService } from '../support/service.ts';

const google = await startGoogle();
const microsoft = await startMicrosoft();
const { url, application, rooms } = await startService({
  PORT: await freePort(),
  ...google.environment,
  ...microsoft.environment,
});
google.allowRedirect(`${url}/auth/callback`);
const { id: applicationId, token } = await application();
const app = createServer((_, response) => response.end('back in the application'));
const browser = await launchBrowser();
let callback = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
  callback = `http://127.0.0.1:${(app.address() as AddressInfo).port}/cb`;
});
afterAll(async () => {
  await browser.close();
  app.close();
});

async function opened(body: object): Promise<Page> {
  const answer = await fetch(`${url}/v2/auth/link`, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json' },
    body: JSON.stringify({
      expires_on: new Date(Date.now() + 600_000).toISOString(),
      redirect_uri: callback,
      ...body,
    }),
  });
  const page = await browser.newPage({ locale: 'en-GB' });
  page.setDefaultTimeout(10_000);
  await page.goto(((await answer.json()) as { link: string }).link);
  return page;
}

/** The account with which the user returned to the application. */
async function linked(page: Page) {
  await page.waitForURL((at) => at.href.startsWith(callback));
  const query = new URL(page.url()).searchParams;
  await page.close();
  expect(query.get('error_type')).toBeNull();
  return rooms.accounts.find(applicationId, query.get('account_id') ?? '');
}

test('a user links a Gmail mailbox, and reconnects it after a try with another one', async () => {
  for (const email of ['ann@gmail.example', 'bob@gmail.example']) google.addUser(email);
  const choose = (page: Page, email: string): Promise<void> => page.click(`button:has-text("${email}")`);
  const page = await opened({ providers: 'google' });
  await checkPage(page, 'en');
  await page.click('text=Continue to Google');
  await choose(page, 'ann@gmail.example');
  const account = await linked(page);
  expect(account).toMatchObject({ provider: 'google', name: 'ann@gmail.example', status: 'running' });

  const again = await opened({ account_id: account?.id });
  await again.click('text=Continue to Google');
  await choose(again, 'bob@gmail.example');
  await again.waitForSelector('text=This is another account');
  await again.click('text=Try again');
  await again.click('text=Continue to Google');
  await choose(again, 'ann@gmail.example');
  expect((await linked(again))?.id).toBe(account?.id);
});

test('a user links an Outlook mailbox, after a try without all permissions', async () => {
  const user = microsoft.user('cleo@outlook.example');
  const { scope } = user;
  microsoft.signsIn(user);
  const page = await opened({ providers: 'outlook' });
  await checkPage(page, 'en');
  user.scope = 'openid profile email Mail.Send';
  await page.click('text=Continue to Outlook');
  await page.waitForSelector('.summary >> text=permissions');
  user.scope = scope;
  await page.click('text=Continue to Outlook');
  expect(await linked(page)).toMatchObject({ provider: 'outlook', name: 'cleo@outlook.example', status: 'running' });
});
