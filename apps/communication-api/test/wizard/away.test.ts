import { afterEach, describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import type { LinkContext, LinkFlow } from '../../src/providers/link-flow.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { freePort } from '../support/free-port.ts';
import { startService } from '../support/service.ts';
import { SignInSite, signInFlow } from '../support/sign-in-site.ts';
import { accountIn, linksAndBrowsers, PlainBrowser } from './plain-browser.ts';

const MINUTE = 60_000;
const REDIRECT = 'https://app.example/cb';
let skew = 0;
let awayUrl = 'https://provider.example/authorize';
let isDown = false;
let lastContext: LinkContext | undefined;

const words = (text: string) => ({ en: text, de: text });
const provider = (name: Provider['name'], link: LinkFlow): Provider => ({
  name,
  title: `Provider ${name}`,
  supports: new Set(['emails']),
  link,
});
const site = await SignInSite.start();
const signIn = signInFlow(site) as LinkFlow;

/** First a page that asks for a server, then the server's own site, then a code. */
const threePages: LinkFlow = {
  begin: async () => 'server',
  stepOf: (state, context) =>
    state === 'server'
      ? {
          kind: 'form',
          name: 'server',
          title: words('Which server?'),
          fields: [{ kind: 'text', name: 'server', label: words('Server') }],
        }
      : state === 'code'
        ? { kind: 'code', name: 'code', title: words('Code') }
        : {
            kind: 'away',
            name: 'sign-in',
            title: words('Sign in'),
            button: words('Go'),
            url: `${site.url}/authorize?${new URLSearchParams({ redirect_uri: context.callbackUrl, state: context.callbackState })}`,
          },
  submit: async (state) => {
    if (state === 'server') return { kind: 'next', state: 'away' };
    if (state === 'away') return { kind: 'next', state: 'code' };
    return { kind: 'identified', account: { providerUserId: 'three', name: 'three', credentials: {} } };
  },
};

/** Leads anywhere, and does not ask its site for anything. */
const anywhere: LinkFlow = {
  begin: async () => {
    if (isDown) throw new Error('canary-down');
    return {};
  },
  stepOf: () => ({ kind: 'away', name: 'go', title: words('Go'), button: words('Go there'), url: awayUrl }),
  submit: async (_, __, context) => {
    lastContext = context;
    return { kind: 'identified', account: { providerUserId: 'ann', name: 'ann', credentials: {} } };
  },
};

const port = await freePort();
const { url, application, db, rooms, app, logged } = await startService(
  { PORT: port, TRUSTED_PROXIES: 'loopback' },
  {
    clock: () => Date.now() + skew,
    providers: [provider('google', signIn), provider('linkedin', anywhere), provider('telegram', threePages)],
  },
);
const { id: applicationId, token } = await application();
afterEach(() => {
  skew = 0;
  isDown = false;
});

const { browser, createLink, opened } = linksAndBrowsers(url, token, { providers: 'google', redirect_uri: REDIRECT });

let accounts = 0;
const newAccount = (): string => `ann${++accounts}@away.test`;
/** The address of the provider's own site to which the page leads. */
const leave = async (client: PlainBrowser, step = '/step/sign-in'): Promise<string> =>
  (await client.submit(step)) ?? expect.fail(`The page ${client.path} stays here: ${client.text}`);
const pathOf = (address: string): string => address.slice(new URL(address).origin.length);

describe('the way to the provider’s own site and back', () => {
  test('a page explains, its button leads away, and the answer links the account', async () => {
    const { client } = await opened();
    expect(client.path).toBe('/step/sign-in');
    expect(client.text).toContain('It asks you to allow the access.');
    expect(client.text).toContain(`You continue at ${new URL(site.url).host}`);
    expect(client.page.headers.get('content-security-policy')).toContain(
      `form-action 'self' https: https://app.example ${site.url} ${url}`,
    );
    const [cookie] = client.cookies.values();
    const away = await leave(client);
    expect(away).toMatch(new RegExp(`^${site.url}/authorize\\?`));
    expect(new URL(away).searchParams.get('redirect_uri')).toBe(`${url}/auth/callback`);
    const account = newAccount();
    const callback = await client.open(pathOf(site.allow(away, account)));
    expect(callback).toBe(`${REDIRECT}?account_id=${accountIn(callback)}&provider=google`);
    expect(await rooms.accounts.find(applicationId, accountIn(callback))).toMatchObject({ name: account });
    expect([...client.cookies.values()]).not.toContain(cookie);
  });

  test('what was entered on the page stays: a proxy, and the login hint of the link', async () => {
    const global = { allow_user_proxy_override: true, login_hint: 'ann@example.com' };
    const { client } = await opened({ providers: 'linkedin', config: { global } });
    await client.submit('/step/go', { _proxy_host: 'a b', _proxy_port: '1080' });
    expect(client.text).toContain('Host: Enter a host name');
    expect(await client.submit('/step/go', { _proxy_host: 'p.example', _proxy_port: '1080' })).toBe(awayUrl);
    const state = lastStateOf(await onlySession());
    const callback = await client.open(`/auth/callback?state=${state}&code=x`);
    expect(lastContext).toMatchObject({ loginHint: 'ann@example.com', proxy: { host: 'p.example', port: 1080 } });
    expect(lastContext?.callbackState).toBe(state);
    expect((await rooms.accounts.find(applicationId, accountIn(callback)))?.proxy).toMatchObject({ host: 'p.example' });
  });

  test('a user who denies the access can try again, or cancel', async () => {
    const { client } = await opened();
    const first = await leave(client);
    await client.open(pathOf(site.refuse(first)));
    expect(client.path).toBe('/step/sign-in');
    expect(client.page.html).toContain('<title>Error: Sign in at the provider');
    expect(client.text).toContain('You did not allow the access.');
    expect(client.text).toContain('Cancel and return to Test');
    expect(client.page.html).not.toContain('canary');
    const second = await leave(client);
    expect(stateOf(second)).not.toBe(stateOf(first));
    expect(accountIn(await client.open(pathOf(site.allow(second, newAccount()))))).toMatch(/^acc_/);
  });

  test('an error of the provider is shown without its text', async () => {
    const { client } = await opened();
    await client.open(pathOf(site.refuse(await leave(client), 'server_error')));
    expect(client.text).toContain('The provider did not answer as expected.');
    expect(client.page.html).not.toContain('canary');
  });

  test('missing permissions are shown in the words of the provider, and the next try is a new one', async () => {
    const { client } = await opened();
    const first = await leave(client);
    await client.open(pathOf(site.allow(first, newAccount(), 'other')));
    expect(client.text).toContain('Please allow the access to your mailbox.');
    const second = await leave(client);
    const challenge = (address: string) => new URL(address).searchParams.get('code_challenge');
    expect(challenge(second)).not.toBe(challenge(first));
    expect(accountIn(await client.open(pathOf(site.allow(second, newAccount()))))).toMatch(/^acc_/);
  });

  test('pages may come before and after it', async () => {
    const { client } = await opened({ providers: 'telegram' });
    await client.submit('/step/server');
    const away = await leave(client);
    await client.open(pathOf(site.allow(away, 'three')));
    expect(client.path).toBe('/step/code');
    expect(accountIn(await client.submit('/step/code', { code: '1' }))).toMatch(/^acc_/);
  });

  test('a try that failed begins with the first page again, if that is another one', async () => {
    const { client } = await opened({ providers: 'telegram' });
    await client.submit('/step/server');
    const row = await onlySession();
    const { callbackState: _, ...data } = rooms.wizardSessions.dataOf(row);
    await rooms.wizardSessions.save(row.id, 'flow', data);
    expect(await client.submit('/step/sign-in')).toBeUndefined();
    expect(client.path).toBe('/step/server');
  });

  test('a reconnection with another account is a page, and the right one reconnects', async () => {
    const account = newAccount();
    const first = await opened();
    const accountId = accountIn(await first.client.open(pathOf(site.allow(await leave(first.client), account))));
    const { client } = await opened({ account_id: accountId });
    const away = await leave(client);
    expect(new URL(away).searchParams.get('login_hint')).toBe(account);
    await client.open(pathOf(site.allow(away, 'other@away.test')));
    expect([client.path, client.page.status]).toEqual(['/wrong-account', 401]);
    expect(client.text).toContain(`You signed in to other@away.test. This link is for ${account}.`);
    await client.submit('/back');
    const callback = await client.open(pathOf(site.allow(await leave(client), account)));
    expect(accountIn(callback)).toBe(accountId);
  });

  test('a provider that cannot make its page is a page with another try', async () => {
    isDown = true;
    const { client, path } = await opened({ providers: 'linkedin' });
    expect([client.path, client.page.status]).toEqual(['/unreachable', 503]);
    expect(client.text).toContain('The provider cannot be reached');
    await client.submit('/back');
    expect(client.path).toBe('/unreachable');
    await client.open(`${path}/step/go`);
    expect(client.path).toBe('/unreachable');
    isDown = false;
    await client.submit('/back');
    expect(client.path).toBe('/step/go');
  });

  test.each(['http://provider.example/authorize', 'javascript:alert(1)'])('it never leads to %s', async (address) => {
    const before = awayUrl;
    awayUrl = address;
    const { client } = await opened({ providers: 'linkedin' });
    awayUrl = before;
    expect(client.page.status).toBe(500);
    expect(client.page.html).not.toContain(address);
  });
});

describe('the state', () => {
  test('counts once: of two callbacks at the same time, one asks the provider, and both lead to the application', async () => {
    const { client } = await opened();
    const back = pathOf(site.allow(await leave(client), newAccount()));
    const before = site.tokenRequests;
    site.holds = true;
    const both = [client.request(await passedOn(client, back)), client.request(await passedOn(client, back))];
    await expect.poll(() => site.release).toBeTypeOf('function');
    site.release?.();
    const [one, two] = await Promise.all(both);
    expect(accountIn(one?.location ?? '')).toMatch(/^acc_/);
    expect(two?.location).toBe(one?.location);
    expect(site.tokenRequests).toBe(before + 1);
    // The same again, later.
    expect((await client.request(await passedOn(client, back))).location).toBe(one?.location);
    expect(site.tokenRequests).toBe(before + 1);
  });

  test('does not count after a try that failed', async () => {
    const { client } = await opened();
    const away = await leave(client);
    await client.open(pathOf(site.refuse(away)));
    const before = site.tokenRequests;
    await client.open(pathOf(site.allow(away, newAccount())));
    expect(client.path).toBe('/step/sign-in');
    expect(client.text).toContain('This sign-in was already used, or a newer one was started.');
    expect(site.tokenRequests).toBe(before);
  });

  test('of an older try does not count', async () => {
    const { client } = await opened({ providers: ['google', 'mock'] });
    await client.submit('/choose', { provider: 'google' });
    const old = await leave(client);
    await client.submit('/back');
    await client.submit('/choose', { provider: 'google' });
    const account = newAccount();
    await client.open(pathOf(site.allow(old, account)));
    expect(client.text).toContain('a newer one was started');
    const away = await leave(client);
    expect(accountIn(await client.open(pathOf(site.allow(away, account))))).toMatch(/^acc_/);
  });

  test('does not count on the page of another provider', async () => {
    const { client } = await opened({ providers: ['google', 'mock'] });
    await client.submit('/choose', { provider: 'google' });
    const old = await leave(client);
    await client.submit('/back');
    await client.submit('/choose', { provider: 'mock' });
    await client.open(pathOf(site.allow(old, newAccount())));
    expect(client.path).toBe('/step/login');
    expect(client.text).not.toContain('newer one');
  });

  test('stays the same for two clicks, and the first answer counts', async () => {
    const { client } = await opened();
    const { path, body } = client.form('/step/sign-in');
    const [one, two] = await Promise.all([1, 2].map(() => client.request(path, { method: 'POST', body })));
    const away = [one, two].map((seen) => seen?.location ?? '').find((address) => address.startsWith(site.url));
    expect(away).toBeDefined();
    expect(accountIn(await client.open(pathOf(site.allow(away ?? '', newAccount()))))).toMatch(/^acc_/);
  });

  test('does not come back when the language changes while the provider works', async () => {
    const { client, path } = await opened();
    const back = pathOf(site.refuse(await leave(client)));
    const row = await onlySession();
    await client.request(await passedOn(client, back));
    // A request that has read the session before.
    await rooms.wizardSessions.setLanguage(row, 'de');
    expect(rooms.wizardSessions.dataOf(await onlySession()).callbackState).toBeUndefined();
    await client.open(`${path}?lang=de`);
    expect(client.text).toContain('Beim Anbieter anmelden');
  });

  test('a crash while the provider worked leaves a page with another try', async () => {
    const { client, path } = await opened();
    const away = await leave(client);
    const row = await onlySession();
    const { callbackState, ...data } = rooms.wizardSessions.dataOf(row);
    await rooms.wizardSessions.save(row.id, 'flow', { ...data, takenState: callbackState });
    await client.open(path);
    const next = await leave(client);
    expect(stateOf(next)).not.toBe(stateOf(away));
    expect(accountIn(await client.open(pathOf(site.allow(next, newAccount()))))).toMatch(/^acc_/);
  });

  test('of an attacker’s link links nothing in the browser of a victim', async () => {
    const { client: attacker, path } = await opened();
    const account = newAccount();
    const back = pathOf(site.allow(await leave(attacker), account));
    const before = site.tokenRequests;
    const victim = browser();
    await victim.open(back);
    expect([victim.page.status, victim.text]).toEqual([
      403,
      expect.stringContaining('We cannot continue this sign-in'),
    ]);
    // Nor if the victim has opened the attacker's link.
    await victim.open(path);
    await victim.open(back);
    expect(victim.text).toContain('a newer one was started');
    expect(site.tokenRequests).toBe(before);
    expect(await rooms.accounts.findLinked(applicationId, 'google', account)).toBeUndefined();
    expect(victim.page.html).not.toContain('canary');
  });

  test('of one link does not count for another one of the same browser', async () => {
    const { client } = await opened();
    const away = await leave(client);
    const other = await createLink();
    await client.open(other);
    const { search } = new URL(site.allow(away, newAccount()));
    const { status, html } = await client.request(`${other}/callback${search}`);
    expect([status, html]).toEqual([403, expect.stringContaining('We cannot continue this sign-in')]);
  });

  test.each([
    ['missing', () => ''],
    ['made up', () => '?state=abc&code=x'],
    ['changed', (state: string) => `?code=x&state=${state.slice(0, -2)}${state.endsWith('AA') ? 'BB' : 'AA'}`],
  ])('that is %s is a page, for a program an error object', async (_, queryOf) => {
    const { client, path } = await opened();
    const query = queryOf(stateOf(await leave(client)));
    for (const at of [`/auth/callback${query}`, `${path}/callback${query}`]) {
      await client.open(at);
      expect(client.page.status).toBe(403);
      expect(client.text).toContain('We cannot continue this sign-in');
      const { html } = await client.request(at, { headers: { accept: 'application/json' } });
      expect(JSON.parse(html)).toMatchObject({ status: 403, type: 'errors/session_mismatch' });
    }
  });

  test('says nothing about the link', async () => {
    const { client, path } = await opened();
    const state = Buffer.from(stateOf(await leave(client)), 'base64url').toString('latin1');
    expect(state).not.toContain(path.slice(-64));
    expect(state).not.toContain(Buffer.from(path.slice(-64), 'hex').toString('latin1'));
  });
});

describe('hosts', () => {
  test('the session stays on the host on which the link was opened', async () => {
    const local = url.replace('127.0.0.1', 'localhost');
    const client = new PlainBrowser(local, { 'x-forwarded-for': '198.51.100.1' });
    await client.open(await createLink());
    const back = site.allow(await leave(client), newAccount());
    expect(new URL(back).origin).toBe(url);
    const { location } = await client.request(back);
    expect(location).toMatch(new RegExp(`^${local}/auth/l/`));
    expect(accountIn(await client.open(pathOf(location ?? '')))).toMatch(/^acc_/);
  });

  test('a link on a custom domain continues there', async () => {
    const host = 'connect.app.example';
    await db
      .insertInto('domains')
      .values({
        ...{ id: newId('dom', Date.now()), application_id: applicationId, host },
        ...{ purpose: 'auth', status: 'verified', created_at: new Date() },
      })
      .execute();
    const path = await createLink({ domain: host });
    const at = (target: string, more: object = {}) => app.inject({ url: target, headers: { host }, ...more });
    const cookie = String((await at(path)).headers['set-cookie']).split(';')[0] ?? '';
    expect(cookie).toMatch(/^__Host-wizard-/);
    const page = await at(`${path}/step/sign-in`, { headers: { host, cookie } });
    const csrf = /step\/sign-in".*?name="_csrf" value="([^"]+)"/s.exec(page.body)?.[1] ?? '';
    const left = await at(`${path}/step/sign-in`, {
      method: 'POST',
      headers: { host, cookie, 'content-type': 'application/x-www-form-urlencoded' },
      payload: `_csrf=${encodeURIComponent(csrf)}`,
    });
    const back = site.allow(String(left.headers.location), newAccount());
    expect(back).toMatch(new RegExp(`^${url}/auth/callback\\?`));
    const passed = await app.inject({ url: pathOf(back), headers: { host: new URL(url).host } });
    expect(passed.headers.location).toBe(`https://${host}${path}/callback${new URL(back).search}`);
    const arrived = await at(pathOf(String(passed.headers.location)), { headers: { host, cookie } });
    expect(accountIn(String(arrived.headers.location))).toMatch(/^acc_/);
    expect((await at('/auth/callback?state=x')).statusCode).toBe(421);
  });

  test('a link that has expired meanwhile says what to do', async () => {
    const { client } = await opened();
    const back = pathOf(site.allow(await leave(client), newAccount()));
    skew = 11 * MINUTE;
    await client.open(back);
    expect(client.page.status).toBe(401);
    expect(client.text).toContain('This link has expired');
  });

  test('a link that was cancelled meanwhile stays cancelled', async () => {
    const { client, path } = await opened();
    const { path: cancel, body } = client.form('/cancel');
    const back = pathOf(site.allow(await leave(client), newAccount()));
    await client.request(cancel, { method: 'POST', body });
    await client.open(back);
    expect(client.path).toBe('/cancelled');
    expect((await rooms.links.resolve(path.slice(-64)))?.status).toBe('cancelled');
  });
});

test('the log has no code, no state and no text of the provider', () => {
  expect(logged()).toContain('a provider failed in the wizard');
  expect(logged()).not.toMatch(/canary|state=/);
});

const stateOf = (address: string): string => new URL(address).searchParams.get('state') ?? '';

/** The page of the link to which the callback leads. */
async function passedOn(client: PlainBrowser, back: string): Promise<string> {
  return pathOf((await client.request(back)).location ?? '');
}

/** The session that was made last. */
const onlySession = () =>
  db.selectFrom('wizard_sessions').selectAll().orderBy('id', 'desc').limit(1).executeTakeFirstOrThrow();

const lastStateOf = (row: Awaited<ReturnType<typeof onlySession>>): string =>
  rooms.wizardSessions.dataOf(row).callbackState ?? '';
