import { checkPage } from 'headgate-testbed/page-checks';
import { expect, test } from 'vitest';
import { startApplicationSite } from '../support/application-site.ts';
import { startBrowser } from '../support/browser-pages.ts';
import { clientOf } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { linkMaker } from '../support/links.ts';
import { startMicrosoft } from '../support/microsoft.ts';
import { startService } from '../support/service.ts';

const microsoft = await startMicrosoft();
const { url, application } = await startService({ ...microsoft.environment, PORT: await freePort() });
const { token } = await application();
const { callback, returned } = await startApplicationSite();
const newPage = await startBrowser();
const createLink = linkMaker(url, token, { providers: 'outlook', redirect_uri: callback, state: 'u42' });

test.each([
  ['en-GB', 'Continue to Outlook', 'did not give all permissions'],
  ['de-DE', 'Weiter zu Outlook', 'nicht alle Berechtigungen'],
])('a user links a mailbox of Outlook, at the second attempt (%s)', async (locale, button, missing) => {
  const user = microsoft.user();
  const { scope } = user;
  microsoft.signsIn(user);
  const page = await newPage({ locale, viewport: { width: 320, height: 640 } });
  await page.goto(await createLink());
  await checkPage(page, locale.slice(0, 2));
  user.scope = 'openid profile email Mail.Send';
  await page.click(`text=${button}`);
  await page.waitForSelector(`text=${missing}`);
  await checkPage(page, locale.slice(0, 2));
  user.scope = scope;
  await page.click(`text=${button}`);
  const { account_id, ...answer } = await returned(page);
  expect(answer).toEqual({ provider: 'outlook', state: 'u42' });
  const linked = await clientOf(url, token)('GET', `/v2/accounts/${account_id}`);
  expect(linked.body).toMatchObject({ user_id: user.oid });
});
