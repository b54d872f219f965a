import { afterEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import type { LinkAnswer, LinkFlow, LinkStep } from '../../src/providers/link-flow.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { freePort } from '../support/free-port.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';
import { accountIn, linksAndBrowsers } from './plain-browser.ts';

const MINUTE = 60_000;
/** Milliseconds by which the clock of the service is ahead. */
let skew = 0;

const words = (text: string) => ({ en: text, de: text });

/** Providers for what the mock does not do: a country, a QR code, an error of their own. */
const flowOf = (step: LinkStep, answer: () => LinkAnswer<unknown>): LinkFlow => ({
  begin: async () => ({}),
  stepOf: () => step,
  submit: async () => answer(),
});
const provider = (name: Provider['name'], title: string, link: LinkFlow): Provider => ({
  name,
  title,
  supports: new Set(['messaging']),
  link,
});
const FORM: LinkStep = { kind: 'form', name: 'sign-in', title: words('Sign in'), fields: [] };
const identified = (providerUserId: string): LinkAnswer<unknown> => ({
  kind: 'identified',
  account: { providerUserId, name: providerUserId, credentials: {} },
});
let scanned = false;
const providers: readonly Provider[] = [
  provider(
    'linkedin',
    'LinkedIn',
    flowOf(FORM, () => identified('ann@linkedin')),
  ),
  provider('whatsapp', 'WhatsApp', {
    ...flowOf(
      {
        kind: 'wait',
        name: 'scan',
        title: words('Scan the code'),
        everySeconds: 3,
        image: { url: 'data:image/png;base64,AAAA', description: words('QR code') },
      },
      () => (scanned ? identified('ann@whatsapp') : { kind: 'next', state: {} }),
    ),
  }),
  provider(
    'google',
    'Google',
    flowOf(FORM, () => {
      throw new Error('canary-error');
    }),
  ),
  provider(
    'outlook',
    'Outlook',
    flowOf(FORM, () => identified('ann@outlook')),
  ),
  provider(
    'imap',
    'IMAP',
    flowOf(FORM, () => identified('ann@imap')),
  ),
  provider(
    'telegram',
    'Telegram',
    flowOf(FORM, () => {
      skew = 11 * MINUTE;
      return identified('ann@telegram');
    }),
  ),
];

const { url, application, db, rooms, logged } = await startService(
  { PORT: await freePort(), TRUSTED_PROXIES: 'loopback' },
  { clock: () => Date.now() + skew, providers },
);
const { id: applicationId, token } = await application();
afterEach(() => {
  skew = 0;
});

const REDIRECT = 'https://app.example/cb?x=1';

const { browser, createLink, opened } = linksAndBrowsers(url, token, {
  providers: 'mock',
  redirect_uri: REDIRECT,
  state: 'u 42',
});

let mailboxes = 0;
const newAddress = (): string => `box${++mailboxes}@mock.test`;
const login = (values: object = {}) => ({ address: newAddress(), password: secret(), ...values });

describe('the way to an account', () => {
  test('the mock asks for a mailbox, and the callback names the linked account', async () => {
    const { client } = await opened();
    expect(client.path).toBe('/step/login');
    expect(client.page.html).toContain('value="name@mock.test"');
    const address = newAddress().toUpperCase();
    const callback = await client.submit('/step/login', login({ address, drafts: '' }));
    const accountId = accountIn(callback);
    expect(callback).toBe(`${REDIRECT}&account_id=${accountId}&provider=mock&state=u+42`);
    const account = await rooms.accounts.find(applicationId, accountId);
    expect(account).toMatchObject({
      provider: 'mock',
      provider_user_id: address.toLowerCase(),
      name: address.toLowerCase(),
      status: 'running',
      sync: { status: 'completed' },
    });
    expect(account && rooms.accounts.secretOf(account)).toEqual({ credentials: { drafts: false } });
  });

  test('a link into a scope that was disabled meanwhile links nothing', async () => {
    const scope = await rooms.scopes.create(applicationId, { name: 'Scope', reference: null });
    const { client } = await opened({ scope_id: scope.id });
    await rooms.scopes.setStatus(applicationId, scope.id, 'disabled');
    const address = newAddress();
    expect(await client.submit('/step/login', login({ address }))).toBeUndefined();
    expect(client.text).toContain('This provider is not available');
    expect(await rooms.accounts.findLinked(applicationId, 'mock', address)).toBeUndefined();
  });

  test('a code is asked for, a wrong one is shown on the page, and the right one links', async () => {
    const { client } = await opened();
    await client.submit('/step/login', login({ behaviour: 'code' }));
    expect(client.path).toBe('/step/code');
    await client.submit('/step/code', { code: '111111' });
    expect(client.path).toBe('/step/code');
    expect(client.text).toContain('The code is not correct.');
    expect(client.page.html).not.toContain('111111');
    expect(accountIn(await client.submit('/step/code', { code: ' 123456 ' }))).toMatch(/^acc_/);
  });

  test('a wrong password is shown on the page, and nothing that is secret comes back', async () => {
    const { client } = await opened();
    await client.submit('/step/login', login({ address: 'ann@mock.test', password: 'wrong' }));
    expect(client.path).toBe('/step/login');
    expect(client.text).toContain('The address or the password is wrong.');
    expect(client.page.html).toContain('<title>Error: ');
    expect(client.page.html).toContain('value="ann@mock.test"');
    expect(client.page.html).not.toContain('value="wrong"');
    expect(client.page.html).toMatch(/aria-describedby="field-password-fault field-password-hint"/);
  });

  test('what was entered is stored sealed, without passwords', async () => {
    const { path, client } = await opened();
    const password = secret();
    await client.submit('/step/login', login({ address: 'canary-2@mock.test', password, behaviour: 'code' }));
    const link = await rooms.links.resolve(path.split('/').at(-1) ?? '');
    const rows = await db
      .selectFrom('wizard_sessions')
      .selectAll()
      .where('link_id', '=', link?.id ?? '')
      .execute();
    expect(rows).toHaveLength(1);
    const [row] = rows;
    expect(Buffer.from(row?.data ?? []).toString('latin1')).not.toMatch(/canary/);
    expect(JSON.stringify(row && rooms.wizardSessions.dataOf(row))).not.toContain(password);
  });

  test.each([
    ['address', '', 'Fill in this field.'],
    ['address', 'nobody', 'Enter an email address'],
    ['password', '', 'Fill in this field.'],
    ['sync', '601', 'Enter a whole number'],
    ['sync', '1.5', 'Enter a whole number'],
    ['behaviour', 'other', 'Choose one of the options.'],
    ['address', `${'a'.repeat(2_000)}@mock.test`, 'This is too long.'],
  ])('%s cannot be "%s"', async (field, value, fault) => {
    const { client } = await opened();
    await client.submit('/step/login', login({ [field]: value }));
    expect(client.path).toBe('/step/login');
    expect(client.text).toContain(fault);
    expect(client.page.html).toContain(`id="field-${field}-fault"`);
  });

  test('a restricted account leads to the callback with its error, and the link stays open', async () => {
    const { client, path } = await opened();
    expect(await client.submit('/step/login', login({ behaviour: 'restricted' }))).toBe(
      `${REDIRECT}&error_type=api%2Frestricted_account&error_title=Account+restricted&error_detail=The+provider+restricted+this+account.&state=u+42`,
    );
    await client.open(path);
    expect(client.path).toBe('/step/login');
  });

  test('an account that is linked already leads to the callback with its id', async () => {
    const address = newAddress();
    const first = accountIn(await (await opened()).client.submit('/step/login', login({ address })));
    const { client } = await opened();
    expect(await client.submit('/step/login', login({ address }))).toBe(
      `${REDIRECT}&error_type=api%2Falready_exists&error_title=Account+already+linked&error_detail=${first}&state=u+42`,
    );
  });

  test('a failure of the provider is shown on the page without its text', async () => {
    const { client } = await opened({ providers: 'google' });
    await client.submit('/step/sign-in');
    expect(client.text).toContain('The provider did not answer as expected.');
    expect(client.page.html).not.toContain('canary-error');
  });

  test('a page that waits submits itself until the provider is ready', async () => {
    const { client } = await opened({ providers: 'whatsapp' });
    expect(client.page.html).toContain('data-repeat="3"');
    expect(client.page.html).toContain('<img class="picture" src="data:image/png;base64,AAAA" alt="QR code"');
    await client.submit('/step/scan');
    expect(client.path).toBe('/step/scan');
    scanned = true;
    expect(accountIn(await client.submit('/step/scan'))).toMatch(/^acc_/);
  });

  test('the account belongs to the scope of the link', async () => {
    const id = newId('scp', Date.now());
    await db
      .insertInto('scopes')
      .values({ id, application_id: applicationId, name: 'Scope', status: 'active', created_at: new Date() })
      .execute();
    const { client } = await opened({ scope_id: id });
    const accountId = accountIn(await client.submit('/step/login', login()));
    expect((await rooms.accounts.find(applicationId, accountId))?.scope_id).toBe(id);
  });

  test('the login hint fills in the address', async () => {
    const { client } = await opened({ config: { global: { login_hint: '"ann"@mock.test<' } } });
    expect(client.page.html).toContain('value="&quot;ann&quot;@mock.test&lt;"');
  });
});

describe('the choice of a provider', () => {
  test('several providers are a list, from seven on with a search', async () => {
    const { client, path } = await opened({ providers: ['mock', 'imap'] });
    expect(client.path).toBe('/choose');
    expect(client.page.html).not.toContain('type="search"');
    await client.submit('/choose', { provider: 'imap' });
    expect(client.path).toBe('/step/sign-in');
    await client.open(`${path}/choose`);
    expect(client.path).toBe('/step/sign-in');
    await client.submit('/back');
    expect(client.path).toBe('/choose');
  });

  test('the search works without script', async () => {
    const { client, path } = await opened({ providers: '*' });
    expect(client.page.html).toContain('type="search"');
    await client.open(`${path}/choose?q=APP`);
    expect([...client.page.html.matchAll(/name="provider" value="(\w+)"/g)].map(([, name]) => name)).toEqual([
      'whatsapp',
    ]);
    await client.open(`${path}/choose?q=nothing`);
    expect(client.page.html).toMatch(/<p id="none" class="hint">/);
  });

  test('a provider that the link does not offer cannot be chosen', async () => {
    const { client } = await opened({ providers: ['mock', 'imap'] });
    await client.submit('/choose', { provider: 'google' });
    expect(client.path).toBe('/choose');
    expect(client.text).toContain('Choose one of the providers.');
  });
});

test('HEAD begins no session', async () => {
  const path = await createLink();
  const client = browser();
  expect((await client.request(path, { method: 'HEAD' })).status).toBe(404);
  expect(client.cookies.size).toBe(0);
});

describe('proxies', () => {
  const allowProxy = { config: { global: { allow_user_proxy_override: true } } };

  test('the user may enter a proxy, if the link allows it', async () => {
    expect((await opened()).client.page.html).not.toContain('<details');
    const { client } = await opened(allowProxy);
    expect(client.page.html).toMatch(/<details><summary>/);
    const password = secret();
    const proxy = {
      _proxy_protocol: 'socks5',
      _proxy_host: 'p.example',
      _proxy_username: 'u',
      _proxy_password: password,
    };
    await client.submit('/step/login', login({ ...proxy, _proxy_port: '0' }));
    expect(client.page.html).toMatch(/<details open><summary>/);
    expect(client.text).toContain('Port: Enter a port from 1 to 65535.');
    expect(client.page.html).not.toContain(password);
    await client.submit('/step/login', login({ ...proxy, _proxy_port: '1080', password: 'wrong' }));
    expect(client.text).toContain('Leave this empty to keep the password that you entered.');
    expect(client.page.html).not.toContain(password);
    const accountId = accountIn(await client.submit('/step/login', login()));
    const account = await rooms.accounts.find(applicationId, accountId);
    expect(account?.proxy).toEqual({ protocol: 'socks5', host: 'p.example', port: 1080, username: 'u' });
    expect(account && rooms.accounts.secretOf(account).proxy?.password).toBe(password);
  });

  test('a control character in a field of the proxy is dropped, and so can be stored', async () => {
    const { client } = await opened(allowProxy);
    const proxy = { _proxy_host: 'p.example\0', _proxy_port: '1080\0', _proxy_username: 'u\0', _proxy_password: 'p\0' };
    const accountId = accountIn(await client.submit('/step/login', login(proxy)));
    expect((await rooms.accounts.find(applicationId, accountId))?.proxy).toMatchObject({
      host: 'p.example',
      port: 1080,
      username: 'u',
    });
  });

  test('fields that the page did not offer are ignored', async () => {
    const { client } = await opened();
    const accountId = accountIn(
      await client.submit('/step/login', login({ _proxy_host: 'p.example', _proxy_port: '1' })),
    );
    expect((await rooms.accounts.find(applicationId, accountId))?.proxy).toBeNull();
  });

  test('the proxy of the link is used', async () => {
    const custom_proxy = { protocol: 'http', host: 'p.example', port: 8080 };
    const { client } = await opened({ config: { mock: { custom_proxy } } });
    const accountId = accountIn(await client.submit('/step/login', login()));
    expect((await rooms.accounts.find(applicationId, accountId))?.proxy).toEqual(custom_proxy);
  });

  test('the user may choose a country for providers with automatic proxies only', async () => {
    const global = { allow_user_country_override: true };
    expect((await opened({ config: { global } })).client.page.html).not.toContain('name="_country"');
    const custom = { global, linkedin: { custom_proxy: { protocol: 'http', host: 'p.example', port: 1 } } };
    expect((await opened({ providers: 'linkedin', config: custom })).client.page.html).not.toContain('name="_country"');
    const { client } = await opened({ providers: 'linkedin', config: { global } });
    expect(client.page.html).toContain('<option value="FR">France</option>');
    const accountId = accountIn(await client.submit('/step/sign-in', { _country: 'FR' }));
    const account = await rooms.accounts.find(applicationId, accountId);
    expect(account && rooms.accounts.secretOf(account).autoProxy).toEqual({ country: 'FR' });
  });
});

describe('reconnection', () => {
  async function linked(address: string): Promise<string> {
    return accountIn(await (await opened()).client.submit('/step/login', login({ address })));
  }

  test('the account runs again with its new credentials, and keeps its proxy', async () => {
    const address = newAddress();
    const accountId = await linked(address);
    await db
      .updateTable('accounts')
      .set({ status: 'disconnected', status_reason: 'x' })
      .where('id', '=', accountId)
      .execute();
    const { client } = await opened({ account_id: accountId });
    expect(client.page.html).toContain(`value="${address}"`);
    const callback = await client.submit('/step/login', { password: secret(), drafts: '' });
    expect(callback).toBe(`${REDIRECT}&account_id=${accountId}&provider=mock&state=u+42`);
    const account = await rooms.accounts.find(applicationId, accountId);
    expect(account).toMatchObject({ status: 'running', status_reason: null });
    expect(account && rooms.accounts.secretOf(account)).toEqual({ credentials: { drafts: false } });
  });

  test('another mailbox is a page that says which one is expected', async () => {
    const address = newAddress();
    const { client, path } = await opened({ account_id: await linked(address) });
    await client.submit('/step/login', login({ address: 'other@mock.test' }));
    expect([client.path, client.page.status]).toEqual(['/wrong-account', 401]);
    expect(client.text).toContain(`You signed in to other@mock.test. This link is for ${address}.`);
    const { html } = await client.request(`${path}/wrong-account`, { headers: { accept: 'application/json' } });
    expect(JSON.parse(html)).toMatchObject({ status: 401, type: 'errors/wrong_account' });
    await client.submit('/back');
    expect(client.path).toBe('/step/login');
  });

  test('an account that was removed in the meantime is a page', async () => {
    const accountId = await linked(newAddress());
    const { client } = await opened({ account_id: accountId });
    await db
      .updateTable('accounts')
      .set({ removed_at: new Date(), secret: null })
      .where('id', '=', accountId)
      .execute();
    await client.submit('/step/login', login());
    expect(client.page.status).toBe(404);
    expect(client.text).toContain('The account no longer exists');
  });
});

describe('the initial sync', () => {
  const wait = { config: { global: { wait_initial_sync: true } } };

  test('the user waits until it is completed', async () => {
    const { client, path } = await opened(wait);
    await client.submit('/step/login', login({ sync: '60' }));
    expect(client.path).toBe('/sync');
    expect(client.page.html).toContain('<noscript><meta http-equiv="refresh" content="2"/></noscript>');
    expect(client.page.html).toMatch(/<div id="leave" class="lead" hidden>/);
    skew = 30_000;
    const { html } = await client.request(`${path}/progress`, { headers: { accept: 'application/json' } });
    expect(JSON.parse(html)).toMatchObject({
      status: 'running',
      // The real clock goes on.
      text: expect.stringMatching(/^5\d% done$/),
      may_leave: true,
    });
    await client.open(`${path}/sync`);
    expect(client.page.html).toMatch(/<div id="leave" class="lead">/);
    skew = 61_000;
    expect(accountIn(await client.open(`${path}/sync`))).toMatch(/^acc_/);
  });

  test('it may end after the link has expired', async () => {
    const { client, path } = await opened(wait);
    await client.submit('/step/login', login({ sync: '600' }));
    skew = 11 * MINUTE;
    expect(accountIn(await client.open(`${path}/sync`))).toMatch(/^acc_/);
  });

  test('without wait_initial_sync the user returns at once, while the sync runs', async () => {
    const { client } = await opened();
    const accountId = accountIn(await client.submit('/step/login', login({ sync: '60' })));
    expect((await rooms.accounts.find(applicationId, accountId))?.sync).toMatchObject({
      status: 'running',
      duration_ms: 60_000,
    });
  });

  test('another browser sees no progress', async () => {
    const { client, path } = await opened(wait);
    await client.submit('/step/login', login({ sync: '60' }));
    expect((await browser().request(`${path}/progress`)).status).toBe(409);
  });
});

describe('the end of a link', () => {
  test('cancelling leads to the callback, twice as well', async () => {
    const { client, path } = await opened();
    const { path: action, body } = client.form('/cancel');
    const cancelled = `${REDIRECT}&error_type=errors%2Foperation_canceled&error_title=Operation+cancelled&error_detail=The+user+cancelled.&state=u+42`;
    for (let i = 0; i < 2; i++)
      expect((await client.request(action, { method: 'POST', body })).location).toBe(cancelled);
    await client.open(path);
    expect(client.path).toBe('/cancelled');
    const stranger = browser();
    await stranger.open(path);
    expect(stranger.page.status).toBe(409);
    expect(stranger.text).toContain('You cancelled');
  });

  test('of two browsers, the first that links uses the link up', async () => {
    const { client, path } = await opened();
    const late = browser();
    await late.open(path);
    expect(accountIn(await client.submit('/step/login', login()))).toMatch(/^acc_/);
    expect(await late.submit('/step/login', login())).toBeUndefined();
    expect(late.page.status).toBe(409);
    expect(late.text).toContain('This link was already used');
    const { html } = await late.request(path, { headers: { accept: 'application/json' } });
    expect(JSON.parse(html)).toMatchObject({ status: 409, type: 'errors/already_used', title: expect.any(String) });
  });

  test('two browsers at the same moment link one account', async () => {
    const { client, path } = await opened();
    const other = browser();
    await other.open(path);
    const results = await Promise.all([client.submit('/step/login', login()), other.submit('/step/login', login())]);
    expect(results.filter((callback) => callback !== undefined)).toHaveLength(1);
  });

  test('a form that is submitted twice links once, and both answers lead to the callback', async () => {
    const { client } = await opened();
    const { path, body } = client.form('/step/login', login());
    const answers = await Promise.all([1, 2].map(() => client.request(path, { method: 'POST', body })));
    const [first, second] = answers.map(({ location }) => location);
    expect(accountIn(first ?? '')).toMatch(/^acc_/);
    expect(second).toBe(first);
    expect(answers[0]?.headers.get('set-cookie')).toBe(answers[1]?.headers.get('set-cookie'));
  });

  test('the browser that has linked an account still sees that it did', async () => {
    const { client, path } = await opened();
    const callback = await client.submit('/step/login', login());
    await client.open(path);
    expect(client.path).toBe('/linked');
    expect(client.page.html).toContain(`href="${callback?.replaceAll('&', '&amp;')}"`);
  });

  test('an expired link is a page, for a program an error object, at each step', async () => {
    const { client, path } = await opened();
    skew = 10 * MINUTE;
    for (const at of [path, `${path}/step/login`]) {
      await client.open(at);
      expect(client.page.status).toBe(401);
      expect(client.text).toContain('Go back to Test and start again.');
      const { html, headers } = await client.request(at, { headers: { accept: 'application/json' } });
      expect(JSON.parse(html)).toMatchObject({ status: 401, type: 'errors/expired_link' });
      expect(headers.get('content-type')).toMatch(/json/);
    }
  });

  test('a link that expires while the provider works links nothing', async () => {
    const { client, path } = await opened({ providers: 'telegram' });
    await client.submit('/step/sign-in');
    expect(client.page.status).toBe(401);
    expect(client.text).toContain('This link has expired');
    expect(await rooms.accounts.findLinked(applicationId, 'telegram', 'ann@telegram')).toBeUndefined();
    expect((await rooms.links.resolve(path.split('/').at(-1) ?? ''))?.status).toBe('open');
  });

  test.each([`/auth/l/${'0'.repeat(64)}`, '/auth/l/nonsense', '/auth/nothing'])('%s is a 404 page', async (path) => {
    const client = browser();
    await client.open(path);
    expect(client.page.status).toBe(404);
    expect(client.page.html).toMatch(/^<!DOCTYPE html>/);
    const { html } = await client.request(path, { headers: { accept: 'application/json' } });
    expect(JSON.parse(html)).toMatchObject({ status: 404, type: 'errors/resource_not_found' });
  });
});

describe('sessions', () => {
  test('the cookie is HttpOnly and Lax, ends with the link, and changes when an account is linked', async () => {
    const client = browser();
    const { headers } = await client.request(await createLink());
    expect(headers.get('set-cookie')).toMatch(
      /^wizard-[0-9a-f]{8}=[\w-]{43}; Max-Age=(599|600); Path=\/; HttpOnly; SameSite=Lax$/,
    );
    const [before] = client.cookies.values();
    await client.open(headers.get('location') ?? '');
    await client.submit('/step/login', login());
    const [after] = client.cookies.values();
    expect(after).not.toBe(before);
    skew = 11_000;
    const thief = browser();
    thief.cookies.set([...client.cookies.keys()][0] ?? '', before ?? '');
    await thief.open(client.path === '' ? '/' : (headers.get('location') ?? ''));
    expect(thief.page.status).toBe(409);
  });

  test('over https the cookie is a __Host- cookie', async () => {
    const host = 'connect.app.example';
    await db
      .insertInto('domains')
      .values({
        id: newId('dom', Date.now()),
        application_id: applicationId,
        host,
        purpose: 'auth',
        status: 'verified',
        created_at: new Date(),
      })
      .execute();
    const path = await createLink({ domain: host });
    const { headers, statusCode } = await injectAt(host, path);
    expect(statusCode).toBe(303);
    expect(headers['set-cookie']).toMatch(
      /^__Host-wizard-[0-9a-f]{8}=[\w-]{43}; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    expect((await injectAt('evil.example', path)).statusCode).toBe(421);
    expect((await injectAt(host, await createLink())).statusCode).toBe(421);
  });

  test('links of one browser do not disturb each other', async () => {
    const [one, two] = [await createLink(), await createLink()];
    const client = browser();
    await client.open(one);
    const { path, body } = client.form('/step/login', login());
    await client.open(two);
    expect(accountIn((await client.request(path, { method: 'POST', body })).location ?? '')).toMatch(/^acc_/);
    expect(accountIn(await client.submit('/step/login', login()))).toMatch(/^acc_/);
  });

  test('opening a link makes a session and nothing else', async () => {
    const path = await createLink();
    for (let i = 0; i < 3; i++) await browser().open(path);
    expect((await rooms.links.resolve(path.split('/').at(-1) ?? ''))?.status).toBe('open');
  });

  test('a browser without cookies gets a page that asks for them, and no endless redirects', async () => {
    const client = browser();
    const { location } = await client.request(await createLink());
    client.cookies.clear();
    const { status, html } = await client.request(location ?? '');
    expect(status).toBe(403);
    expect(html).toContain('Please allow cookies');
  });

  test('a page of a link that the browser has not opened leads to its entry', async () => {
    const client = browser();
    await client.open(`${await createLink()}/step/login`);
    expect(client.path).toBe('/step/login');
  });
});

describe('forms', () => {
  test.each([
    ['without a token', { _csrf: '' }, {}],
    ['with the token of another form', 'cancel', {}],
    ['from another site', {}, { 'sec-fetch-site': 'cross-site' }],
    ['from another host of the same site', {}, { 'sec-fetch-site': 'same-site' }],
    ['from another origin', {}, { origin: 'https://evil.example' }],
  ])('a form %s is refused', async (_, values, headers) => {
    const { client } = await opened();
    const address = newAddress();
    const forged = values === 'cancel' ? { _csrf: client.form('/cancel').body.get('_csrf') ?? '' } : (values as object);
    const { path, body } = client.form('/step/login', login({ address, ...forged }));
    const { status, html } = await client.request(path, { method: 'POST', body, headers });
    expect(status).toBe(403);
    expect(html).toContain('We could not check this form');
    expect(await rooms.accounts.findLinked(applicationId, 'mock', address)).toBeUndefined();
  });

  test.each([{ origin: 'null', 'sec-fetch-site': 'same-origin' }, { origin: 'null' }, { origin: url }])(
    'a form with %j is accepted',
    async (headers) => {
      const { client } = await opened();
      const { path, body } = client.form('/step/login', login());
      expect((await client.request(path, { method: 'POST', body, headers })).status).toBe(303);
    },
  );

  test('a form of another session is refused', async () => {
    const { client, path } = await opened();
    const stranger = browser();
    await stranger.open(path);
    const { path: action, body } = client.form('/step/login', login());
    expect((await stranger.request(action, { method: 'POST', body })).status).toBe(403);
  });

  test('a body that is not a form is refused with a page', async () => {
    const { client, path } = await opened();
    const headers = { 'content-type': 'application/json' };
    const { status, html } = await client.request(`${path}/step/login`, { method: 'POST', body: '{}', headers });
    expect(status).toBe(422);
    expect(html).toContain('We did not understand this request');
  });

  test('a page that is over leads to the current one, and an old form changes nothing', async () => {
    const { client, path } = await opened();
    const old = client.form('/step/login', login({ behaviour: 'restricted' }));
    await client.submit('/step/login', login({ behaviour: 'code' }));
    await client.open(`${path}/step/login`);
    expect(client.path).toBe('/step/code');
    await client.request(old.path, { method: 'POST', body: old.body });
    await client.open(path);
    expect(client.path).toBe('/step/code');
    await client.submit('/back');
    expect(client.path).toBe('/step/login');
  });

  test('after five wrong passwords there is a pause of a minute', async () => {
    const { client, path } = await opened();
    for (let i = 0; i < 5; i++) await client.submit('/step/login', login({ password: 'wrong' }));
    expect(client.text).toMatch(/You can try again in (59|60) seconds\./);
    const address = newAddress();
    expect(await client.submit('/step/login', login({ address }))).toBeUndefined();
    expect(await rooms.accounts.findLinked(applicationId, 'mock', address)).toBeUndefined();
    skew = MINUTE + 1_000;
    await client.open(path);
    expect(client.text).not.toContain('You can try again');
    expect(accountIn(await client.submit('/step/login', login({ address })))).toMatch(/^acc_/);
  });

  test('wrong codes count as well, and right passwords do not', async () => {
    const { client } = await opened();
    await client.submit('/step/login', login({ behaviour: 'code' }));
    for (let i = 0; i < 5; i++) await client.submit('/step/code', { code: '1' });
    expect(client.text).toMatch(/You can try again in/);
  });

  test('the 31st form of an address in a minute is a page that says how long to wait', async () => {
    const client = browser();
    for (let i = 0; i < 30; i++) await client.request(`/auth/l/${i}/cancel`, { method: 'POST' });
    const { status, html, headers } = await client.request('/auth/l/31/cancel', { method: 'POST' });
    expect(status).toBe(429);
    expect(html).toContain('Too many requests');
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await browser().request('/auth/l/31/cancel', { method: 'POST' })).status).toBe(404);
  });

  test('the 31st form of a link in a minute is refused, from any address', async () => {
    const path = await createLink();
    for (let i = 0; i < 30; i++) await browser().request(`${path}/cancel`, { method: 'POST' });
    expect((await browser().request(`${path}/cancel`, { method: 'POST' })).status).toBe(429);
  });
});

describe('pages', () => {
  test('every page has the headers of the wizard', async () => {
    const { client, path } = await opened();
    for (const at of [path, `${path}/step/login`, '/auth/l/nonsense']) {
      const { headers } = await client.request(at);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('x-robots-tag')).toBe('noindex');
    }
    expect(client.page.headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self' https: https://app.example",
    );
  });

  test('the stylesheet and the script never change under their address, and are small', async () => {
    const { client } = await opened();
    const paths = [...client.page.html.matchAll(/(?:href|src)="(\/auth\/assets\/[^"]+)"/g)].map(
      ([, path]) => path ?? '',
    );
    expect(paths).toHaveLength(2);
    for (const path of paths) {
      const { status, headers, html } = await client.request(path);
      expect(status).toBe(200);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      if (path.endsWith('.js')) expect(Buffer.byteLength(html)).toBeLessThan(3_000);
    }
    expect(Buffer.byteLength(client.page.html)).toBeLessThan(30_000);
  });

  test('the language follows the browser, and then the choice of the user', async () => {
    const { client, path } = await opened({}, { 'accept-language': 'de-CH, en;q=0.5' });
    expect(client.page.html).toContain('<html lang="de" dir="ltr">');
    expect(client.text).toContain('Test-Postfach verbinden');
    await client.open(`${path}/step/login?lang=en`);
    await client.submit('/step/login', login({ behaviour: 'code' }));
    expect(client.text).toContain('Enter the code');
    await client.open('/auth/l/nonsense?lang=de');
    expect(client.text).toContain('Diesen Link gibt es nicht');
  });

  test('a development application has a yellow bar, a production application has none', async () => {
    expect((await opened({ providers: 'imap' })).client.page.html).toContain('class="development"');
    const production = await application('production');
    const { token: linkToken } = await rooms.links.create(production.id, {
      keyId: (await db.selectFrom('api_keys').select('id').executeTakeFirstOrThrow()).id,
      scopeId: null,
      accountId: null,
      providers: ['imap'],
      config: {},
      redirectUri: REDIRECT,
      state: null,
      domain: null,
      expiresOn: new Date(Date.now() + MINUTE),
    });
    const client = browser();
    await client.open(`/auth/l/${linkToken}`);
    expect(client.path).toBe('/step/sign-in');
    expect(client.page.html).not.toContain('class="development"');
  });

  test('the name of an application cannot write into the page', async () => {
    await db.updateTable('applications').set({ name: '<b>"Test"</b>' }).where('id', '=', applicationId).execute();
    const { client } = await opened();
    await db.updateTable('applications').set({ name: 'Test' }).where('id', '=', applicationId).execute();
    expect(client.page.html).toContain('&lt;b>&quot;Test&quot;&lt;/b>');
    expect(client.page.html).not.toContain('<b>');
  });
});

test('the log has no password, no token of a link and no text of a failed provider', () => {
  const text = logged();
  expect(text).toContain('/auth/l/:token/step/:step');
  expect(text).toContain('a provider failed in the wizard');
  expect(text).not.toMatch(/canary|secret|[0-9a-f]{64}/);
});

/** A request for another host, which fetch would not send. */
async function injectAt(host: string, path: string) {
  const { request } = await import('node:http');
  return new Promise<{ statusCode: number | undefined; headers: Record<string, string> }>((resolve, reject) => {
    request(new URL(path, url), { headers: { host } }, (answer) => {
      answer.resume();
      resolve({ statusCode: answer.statusCode, headers: { 'set-cookie': answer.headers['set-cookie']?.[0] ?? '' } });
    })
      .on('error', reject)
      .end();
  });
}
