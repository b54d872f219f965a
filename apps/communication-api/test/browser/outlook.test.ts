import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { launchBrowser } from '../support/chromium.ts';
import { clientOf } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { startMicrosoft } from '../support/microsoft.ts';
import { checkPage } from '../support/page-checks.ts';
import { startService } from '../support/service.ts';

const microsoft = await startMicrosoft();
const { url, application } = await startService({ ...microsoft.environment, PORT: await freePort() });
const { token } = await application();
const call = clientOf(url, token);
const app = createServer((_, response) => response.end('back in the application'));
await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
const browser = await launchBrowser();
afterAll(async () => {
  await browser.close();
  app.close();
});

test.each([
  ['en-GB', 'Continue to Outlook', 'not given all permissions'],
  ['de-DE', 'Weiter zu Outlook', 'nicht alle Berechtigungen'],
])('a user links a mailbox of Outlook, at the second attempt (%s)', async (locale, button, missing) => {
  const user = microsoft.user();
  const { scope } = user;
  microsoft.signsIn(user);
  const context = await browser.newContext({ locale, viewport: { width: 320, height: 640 } });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  const blocked: string[] = [];
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) blocked.push(message.text());
  });
  const { body } = await call('POST', '/v2/auth/link', {
    ...{ providers: 'outlook', expires_on: new Date(Date.now() + 600_000).toISOString(), state: 'u42' },
    redirect_uri: `http://127.0.0.1:${(app.address() as AddressInfo).port}/cb`,
  });
  await page.goto(body.link);
  await checkPage(page, locale.slice(0, 2));
  user.scope = 'openid profile email Mail.Send';
  await page.click(`text=${button}`);
  await page.waitForSelector(`text=${missing}`);
  await checkPage(page, locale.slice(0, 2));
  user.scope = scope;
  await page.click(`text=${button}`);
  await page.waitForSelector('text=back in the application');
  const answer = new URL(page.url()).searchParams;
  expect(answer.get('provider')).toBe('outlook');
  expect(answer.get('state')).toBe('u42');
  expect((await call('GET', `/v2/accounts/${answer.get('account_id')}`)).body).toMatchObject({ user_id: user.oid });
  expect(blocked).toEqual([]);
  await context.close();
});
