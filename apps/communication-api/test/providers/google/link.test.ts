import { describe, expect, test } from 'vitest';
import type { AwayStep } from '../../../src/providers/link-flow.ts';
import type { Provider } from '../../../src/providers/provider.ts';
import { freePort } from '../../support/free-port.ts';
import { startGoogle } from '../../support/google.ts';
import { providerSuite } from '../../support/provider-suite.ts';
import { startService } from '../../support/service.ts';
import { PlainBrowser } from '../../wizard/plain-browser.ts';

const google = await startGoogle();
const service = await startService({ PORT: await freePort(), ...google.environment });
const { url, rooms } = service;
const { id: applicationId, token } = await service.application();
const ANN = 'ann@gmail.example';
const BEN = 'ben@gmail.example';
google.addUser(ANN);
google.addUser(BEN);
google.allowRedirect(`${url}/auth/callback`);
google.allowRedirect('http://127.0.0.1/auth/callback');

providerSuite('google', 'drafts', async () => ({
  provider: rooms.providers.find('google') as Provider,
  act: async (step) => ({ query: (await google.consent((step as AwayStep).url, ANN)).search }),
  delivered: async (messageId) => google.sent(ANN).filter(({ message_id: id }) => id === messageId).length,
}));

const request = async (method: string, path: string, body?: object) => {
  const answer = await fetch(url + path, {
    method,
    headers: { 'x-api-key': token, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, string> };
};

/** A browser on the page that explains what Google will ask for. */
async function opened(body: object): Promise<PlainBrowser> {
  const { body: created } = await request('POST', '/v2/auth/link', {
    expires_on: new Date(Date.now() + 600_000).toISOString(),
    redirect_uri: 'https://app.example/cb',
    ...body,
  });
  const browser = new PlainBrowser(url);
  await browser.open(new URL(created.link ?? '').pathname);
  return browser;
}

/** The way through Google's page and back. Returns the address at the application, if the browser is there. */
async function signIn(browser: PlainBrowser, email: string, deny?: readonly string[]): Promise<URL | undefined> {
  const away = (await browser.submit('/step/provider')) ?? expect.fail(browser.text);
  const back = await google.consent(away, email, deny);
  const callback = await browser.open(back.pathname + back.search);
  return callback === undefined ? undefined : new URL(callback);
}

describe('in the wizard', () => {
  test('a user links a mailbox, after leaving out a permission, and an email is sent with it', async () => {
    const browser = await opened({ providers: 'google' });
    expect(browser.text).toContain('Google asks you to choose an account');
    expect(await signIn(browser, ANN, ['https://www.googleapis.com/auth/gmail.metadata'])).toBeUndefined();
    expect(browser.text).toContain('Google did not give all permissions. Try again');
    const callback = await signIn(browser, ANN);
    const id = callback?.searchParams.get('account_id') ?? '';
    expect(callback?.searchParams.get('provider')).toBe('google');
    expect((await request('GET', `/v2/accounts/${id}`)).body).toMatchObject({ provider: 'google', name: ANN });
    const email = { account_id: id, to: [{ identifier: 'bob@example.com' }], body: 'Hello' };
    const sent = await request('POST', '/api/v1/emails', email);
    expect(sent).toMatchObject({ status: 201, body: { provider_id: google.sent(ANN).at(-1)?.gmail_id } });
  });

  test('an account is reconnected with its own mailbox only, and with new credentials', async () => {
    const linked = await signIn(await opened({ providers: 'google' }), BEN);
    const id = linked?.searchParams.get('account_id') ?? '';
    google.forgetTokens(BEN, 'all');
    const browser = await opened({ account_id: id });
    expect(await signIn(browser, ANN)).toBeUndefined();
    expect(browser.text).toContain(ANN);
    const again = await opened({ account_id: id });
    expect((await signIn(again, BEN))?.searchParams.get('account_id')).toBe(id);
    const account = await rooms.accounts.find(applicationId, id);
    expect(account?.name).toBe(BEN);
    const email = { account_id: id, to: [{ identifier: 'bob@example.com' }], body: 'Hello' };
    expect((await request('POST', '/api/v1/emails', email)).status).toBe(201);
  });

  test('a user who denies the access can try again', async () => {
    const browser = await opened({ providers: 'google' });
    const away = new URL((await browser.submit('/step/provider')) ?? '');
    const state = away.searchParams.get('state') ?? '';
    await browser.open(`/auth/callback?${new URLSearchParams({ error: 'access_denied', state })}`);
    expect(browser.text).toContain('Google was not allowed to link the account. Try again');
    expect(browser.path).toBe('/step/provider');
  });
});
