import { expect, test } from 'vitest';
import { clientOf } from '../support/client.ts';
import { freePort } from '../support/free-port.ts';
import { type MicrosoftUser, signIn, startMicrosoft } from '../support/microsoft.ts';
import { startService } from '../support/service.ts';
import { accountIn, linksAndBrowsers, type PlainBrowser } from './plain-browser.ts';

const microsoft = await startMicrosoft();
const { url, application } = await startService({
  ...microsoft.environment,
  ...{ PORT: await freePort(), TRUSTED_PROXIES: 'loopback' },
});
const { token } = await application();
const call = clientOf(url, token);

const { opened } = linksAndBrowsers(url, token, { providers: 'outlook', redirect_uri: 'https://app.example/cb' });

/** Signs in at Microsoft, and comes back. @returns where the service leads to then, if it leads elsewhere */
async function throughMicrosoft(browser: PlainBrowser, user: MicrosoftUser): Promise<string | undefined> {
  const away = (await browser.submit('/step/provider')) ?? expect.fail(`The page stays here: ${browser.text}`);
  const { pathname, search } = await signIn(microsoft, user, away);
  return browser.open(pathname + search);
}

test('a user links a mailbox of Outlook, an email is sent with it, and the authorization is renewed by a reconnect', async () => {
  const user = microsoft.user();
  const { client: browser } = await opened();
  expect(browser.text).toContain('Microsoft will ask you to sign in');
  const callback = await throughMicrosoft(browser, user);
  const id = accountIn(callback);
  expect(callback).toBe(`https://app.example/cb?account_id=${id}&provider=outlook`);
  const send = () =>
    call('POST', '/api/v1/emails', { account_id: id, to: [{ identifier: 'ann@example.com' }], body: 'Hello' });
  expect((await call('GET', `/v2/accounts/${id}`)).body).toMatchObject({
    ...{ provider: 'outlook', user_id: user.oid, name: user.email, status: 'running' },
  });
  expect(await send()).toMatchObject({ status: 201 });
  expect(user.mailbox.delivered).toHaveLength(1);

  microsoft.revoke(user);
  user.mailbox.expireTokens();
  expect(await send()).toMatchObject({ status: 401, body: { type: 'errors/disconnected_account' } });
  const { client: again } = await opened({ account_id: id });
  await throughMicrosoft(again, microsoft.user());
  expect(again.path).toContain('wrong-account');
  expect(accountIn(await throughMicrosoft((await opened({ account_id: id })).client, user))).toBe(id);
  expect(await send()).toMatchObject({ status: 201 });
  expect(user.mailbox.delivered).toHaveLength(2);
});

test('a user who gave too little sees what is missing, and can try again', async () => {
  const user = microsoft.user();
  const { scope } = user;
  user.scope = 'openid profile email Mail.Send';
  const { client: browser } = await opened();
  expect(await throughMicrosoft(browser, user)).toBeUndefined();
  expect(browser.text).toContain('Outlook did not give all permissions');
  user.scope = scope;
  expect(await throughMicrosoft(browser, user)).toMatch(/^https:\/\/app\.example\/cb\?account_id=/);
});
