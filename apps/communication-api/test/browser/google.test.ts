import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchBrowser } from '../support/chromium.ts';
import { freePort } from '../support/free-port.ts';
import { startGoogle } from '../support/google.ts';
import { startService } from '../support/service.ts';

const google = await startGoogle();
const { url, application } = await startService({ PORT: await freePort(), ...google.environment });
const { token } = await application();
const EMAIL = 'ann@gmail.example';
google.addUser(EMAIL);
google.allowRedirect(`${url}/auth/callback`);

const app = createServer((_, response) => response.end('back in the application'));
const browser = await launchBrowser();
beforeAll(() => new Promise<void>((resolve) => void app.listen(0, '127.0.0.1', resolve)));
afterAll(async () => {
  await browser.close();
  app.close();
});

const post = async (path: string, body: object) => {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'x-api-key': token, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, string> };
};

test('a person links a Google mailbox on the page of the emulator, and an email is sent with it', async () => {
  const { body: link } = await post('/v2/auth/link', {
    providers: 'google',
    expires_on: new Date(Date.now() + 600_000).toISOString(),
    redirect_uri: `http://127.0.0.1:${(app.address() as AddressInfo).port}/cb`,
  });
  const page = await browser.newPage();
  await page.goto(link.link ?? '');
  await page.click('text=Continue to Google');
  await page.waitForSelector('text=Sign in to Google');
  await page.click(`text=${EMAIL}`);
  await page.waitForURL(/\/cb\?/);
  const account_id = new URL(page.url()).searchParams.get('account_id');
  const sent = await post('/api/v1/emails', { account_id, to: [{ identifier: 'bob@example.com' }], body: 'Hello' });
  expect(sent).toMatchObject({ status: 201, body: { provider_id: google.sent(EMAIL)[0]?.gmail_id } });
});
