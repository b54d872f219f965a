import { expect, test } from 'vitest';
import { startApplicationSite } from '../support/application-site.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { clientOf } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { startGoogle } from '../support/google.ts';
import { linkMaker } from '../support/links.ts';
import { startService } from '../support/service.ts';

const google = await startGoogle();
const { url, application } = await startService({ PORT: await freePort(), ...google.environment });
const { token } = await application();
const EMAIL = 'ann@gmail.example';
google.addUser(EMAIL);
google.allowRedirect(`${url}/auth/callback`);

const { callback, returned } = await startApplicationSite();
const newPage = await startBrowser();
const createLink = linkMaker(url, token, { providers: 'google', redirect_uri: callback });

test('a person links a Google mailbox on the page of the emulator, and an email is sent with it', async () => {
  const page = await newPage();
  await page.goto(await createLink());
  await page.click('text=Continue to Google');
  await page.waitForSelector('text=Sign in to Google');
  await page.click(`text=${EMAIL}`);
  const { account_id } = await returned(page);
  const email = { account_id, to: [{ identifier: 'bob@example.com' }], body: 'Hello' };
  const sent = await clientOf(url, token)('POST', '/api/v1/emails', email);
  expect(sent).toMatchObject({ status: 201, body: { provider_id: google.sent(EMAIL)[0]?.gmail_id } });
});
