import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { newId } from '../../src/domain/ids.ts';
import type { Provider } from '../../src/providers/provider.ts';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { copyRow } from '../support/copies.ts';
import { peopleOf } from '../support/dashboard.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';
import { accountIn, PlainBrowser } from '../wizard/plain-browser.ts';

/** The accounts whose credentials the provider was asked to withdraw. */
const withdrawn: string[] = [];
const provider: Provider = {
  ...{ name: 'telegram', title: 'Telegram', supports: new Set() },
  revoke: async ({ id }) => void withdrawn.push(id),
};
const service = await startService({ TRUSTED_PROXIES: 'loopback' }, { providers: [provider] });
const { rooms, db, url, application } = service;
const { signedIn } = peopleOf(service);

const CALLBACK = 'https://app.example/linked?x=1';

/** An application with an account, and an Admin who looks at it. */
async function place(given: Parameters<typeof linkAccount>[2] = {}) {
  const { id, token } = await application();
  const account = await linkAccount(rooms, id, given);
  const list = `/dashboard/applications/${id}/accounts`;
  const { browser, member } = await signedIn('admin');
  await browser.open(`${list}/${account.id}`);
  return { id, account, list, path: `${list}/${account.id}`, browser, member, call: clientOf(url, token) };
}

const setStatus = (id: string, status: 'error' | 'disconnected', status_reason: string) =>
  db.updateTable('accounts').set({ status, status_reason }).where('id', '=', id).execute();

const deedsOn = async (subjectId: string): Promise<readonly string[]> => {
  const entries = db.selectFrom('audit_log').select(['actor', 'action', 'subject']).where('subject_id', '=', subjectId);
  return (await entries.orderBy('id').execute()).map(({ actor, action, subject }) => `${actor} ${action}: ${subject}`);
};

const eventsOf = async (accountId: string): Promise<readonly string[]> =>
  (await db.selectFrom('events').select('type').where('account_id', '=', accountId).orderBy('id').execute()).map(
    ({ type }) => type,
  );

test('the list is filtered as by the API, and its next page keeps the filter', async () => {
  const { id, account, list, browser } = await place({ name: 'ann@mock.test' });
  const away = await linkAccount(rooms, id, { name: 'bob@mock.test', provider: 'imap' });
  await setStatus(away.id, 'error', 'errors/network_down');
  const shown = async (query: string): Promise<readonly (string | undefined)[]> => {
    await browser.open(`${list}?${query}`);
    return [...browser.page.html.matchAll(/<a class="title"[^>]*>([^<]*)</g)].map(([, name]) => name);
  };
  expect(await shown('')).toEqual(['bob@mock.test', 'ann@mock.test']);
  expect(browser.text).toContain('Provider away');
  expect(await shown('status=error')).toEqual(['bob@mock.test']);
  expect(await shown('provider=mock')).toEqual(['ann@mock.test']);
  expect(await shown('search=ANN')).toEqual(['ann@mock.test']);
  expect(await shown('status=error&provider=mock')).toEqual([]);
  expect(browser.text).toContain('No account matches.');
  const scope = await rooms.scopes.create(id, { name: 'Customer 7', reference: null });
  await rooms.accounts.update(id, away.id, { scopeId: scope.id });
  expect(await shown(`scope_id=${scope.id}`)).toEqual(['bob@mock.test']);
  expect(browser.text).toContain('Only accounts of the scope Customer 7');
  // What no filter can be shows everything, and nothing that the database would refuse reaches it.
  expect(await shown('status=gone&provider=x&search=%00%ED%A0%80&search=b&before=acc_1')).toHaveLength(2);
  const names = sql`jsonb_build_object('name', 'ann' || n, 'provider_user_id', 'ann' || n)`;
  await copyRow(db, 'accounts', account.id, 50, names);
  expect(await shown('search=ann&status=running')).toHaveLength(50);
  const [, next = ''] = /href="(\?[^"]*)">Older accounts/.exec(browser.page.html) ?? [];
  expect(await shown(next.slice(1).replaceAll('&amp;', '&'))).toEqual(['ann1']);
});

describe('the page of an account', () => {
  test('shows what the API shows, and no password', async () => {
    const { id, browser, list } = await place();
    const password = secret();
    const scope = await rooms.scopes.create(id, { name: 'Customer 7', reference: null });
    const proxy = { protocol: 'socks5', host: 'p.example', port: 1080, username: 'u', password } as const;
    const account = await linkAccount(rooms, id, {
      ...{ name: 'eve@mock.test', scopeId: scope.id, initialSyncMs: 3_600_000 },
      secret: { credentials: {}, proxy },
    });
    await browser.open(`${list}/${account.id}`);
    expect(browser.text).toContain('socks5://u@p.example:1080');
    expect(browser.text).toContain('Customer 7');
    expect(browser.text).toMatch(/Initial sync Running, \d+ %/);
    expect(browser.text).toContain(account.created_at.toISOString().slice(0, 10));
    expect(browser.page.html).not.toContain(password);
  });

  test.each([
    ['disconnected', 'errors/disconnected_account', 'does not allow the access', 'make a link to reconnect'],
    ['disconnected', 'errors/invalid_credentials', 'refused the password', 'make a link to reconnect'],
    ['error', 'errors/network_down', 'could not be reached', 'the first one that succeeds ends this status'],
    ['error', 'errors/service_unavailable', 'is not available', 'the first one that succeeds ends this status'],
  ] as const)('says what %s, because of %s, means, and what to do', async (status, reason, why, advice) => {
    const { account, path, browser } = await place();
    await setStatus(account.id, status, reason);
    await browser.open(path);
    for (const text of [reason, why, advice]) expect(browser.text).toContain(text);
    await rooms.accounts.update(account.application_id, account.id, { paused: true });
    await browser.open(path);
    // The pause hides the status of the provider from the API, not from a person.
    for (const text of ['Paused since', why]) expect(browser.text).toContain(text);
  });
});

describe('a link to reconnect', () => {
  test('is shown once, reconnects the account, and needs no API key', async () => {
    const { id, account, path, browser, member } = await place();
    await setStatus(account.id, 'disconnected', 'errors/disconnected_account');
    await db.updateTable('api_keys').set({ revoked_at: new Date() }).where('application_id', '=', id).execute();
    const { path: action, body } = browser.form('/link', { redirect_uri: ` ${CALLBACK} `, lifetime: '168' });
    const seen = await browser.request(action, { method: 'POST', body });
    const [, link = ''] = /<code>(http[^<]*\/auth\/l\/[0-9a-f]{64})<\/code>/.exec(seen.html) ?? [];
    expect([seen.status, seen.headers.get('cache-control')]).toEqual([200, 'no-store']);
    // A reload makes no second link.
    expect((await browser.request(action, { method: 'POST', body })).status).toBe(409);
    const rows = db.selectFrom('auth_links').selectAll().where('application_id', '=', id);
    expect(await rows.execute()).toMatchObject([
      { account_id: account.id, api_key_id: null, providers: ['mock'], redirect_uri: CALLBACK, status: 'open' },
    ]);
    const user = new PlainBrowser(url);
    await user.open(new URL(link).pathname);
    const callback = await user.submit('/step/login', { address: account.name, password: 'a', drafts: 'on' });
    expect([callback?.startsWith(CALLBACK), accountIn(callback)]).toEqual([true, account.id]);
    await browser.open(path);
    expect(browser.text).toContain('It sends email.');
    expect(browser.text).toContain('Reconnected');
    expect(await deedsOn(account.id)).toEqual([`${member.name} made a link to reconnect: ${account.name}`]);
  });

  test.each([
    ['', '1', 'Enter an https address'],
    [`https://app.example/${'x'.repeat(2_000)}`, '1', 'Enter an https address'],
    ['https://app.example/\0', '1', 'Enter an https address'],
    ['http://app.example', '1', 'Must be https, or http to a loopback address'],
    ['https://other.example/cb', '1', 'Not in the list of redirect addresses'],
    ['https://app.example/cb', '9999', 'Choose one of these.'],
  ])('to %j, for %s hours, is a fault: nothing that was entered is lost', async (redirect_uri, lifetime, message) => {
    const { id, browser, path } = await place();
    await db
      .updateTable('applications')
      .set({ redirect_uris: ['https://app.example/cb'] })
      .where('id', '=', id)
      .execute();
    await browser.open(path);
    expect(browser.form('/link').body.get('redirect_uri')).toBe('https://app.example/cb');
    await browser.submit('/link', { redirect_uri, lifetime });
    expect([browser.page.status, browser.text]).toEqual([422, expect.stringContaining(message)]);
    if (!redirect_uri.includes('\0')) expect(browser.form('/link').body.get('redirect_uri')).toBe(redirect_uri);
    expect(await db.selectFrom('auth_links').select('id').where('application_id', '=', id).execute()).toEqual([]);
  });

  test('may have a host of the application that is verified', async () => {
    const { id, browser, path } = await place();
    const host = async (name: string, status: 'verified' | 'pending', purpose: 'auth' | 'tracking') => {
      const row = { id: newId('dom', Date.now()), application_id: id, host: name, purpose, status };
      await db
        .insertInto('domains')
        .values({ ...row, created_at: new Date() })
        .execute();
    };
    await host('connect.app.example', 'verified', 'auth');
    await host('new.app.example', 'pending', 'auth');
    await host('track.app.example', 'verified', 'tracking');
    await browser.open(path);
    expect(browser.text).toContain('connect.app.example');
    for (const other of ['new.app.example', 'track.app.example']) {
      expect(browser.text).not.toContain(other);
      await browser.submit('/link', { redirect_uri: CALLBACK, domain: other });
      expect([browser.page.status, browser.text]).toEqual([
        422,
        expect.stringContaining('Not a verified wizard domain'),
      ]);
    }
    await browser.submit('/link', { redirect_uri: CALLBACK, domain: 'connect.app.example' });
    expect(browser.page.html).toMatch(/<code>https:\/\/connect\.app\.example\/auth\/l\/[0-9a-f]{64}<\/code>/);
  });

  test('is refused if the scope of the account is disabled', async () => {
    const { id, browser, list } = await place();
    const scope = await rooms.scopes.create(id, { name: 'Customer 8', reference: null });
    const account = await linkAccount(rooms, id, { scopeId: scope.id });
    await rooms.scopes.setStatus(id, scope.id, 'disabled');
    await browser.open(`${list}/${account.id}`);
    await browser.submit('/link', { redirect_uri: CALLBACK });
    expect([browser.page.status, browser.text]).toEqual([422, expect.stringContaining('the scope is disabled')]);
  });
});

test('an account is paused and resumed, each once', async () => {
  const { account, browser, member, call } = await place();
  const email = { account_id: account.id, to: [{ identifier: 'ann@example.com' }], subject: 'Hi', body: 'Hi' };
  const pause = browser.form('/pause');
  await browser.submit('/pause');
  expect(browser.text).toContain('The account is paused. It sends nothing.');
  expect((await call('POST', '/api/v1/emails', email)).body.type).toBe('errors/action_required');
  // Another person had the page of before.
  expect((await browser.request(pause.path, { method: 'POST', body: pause.body })).status).toBe(303);
  await browser.submit('/resume');
  expect((await call('POST', '/api/v1/emails', email)).status).toBe(201);
  expect(await deedsOn(account.id)).toEqual([
    `${member.name} paused an account: ${account.name}`,
    `${member.name} resumed an account: ${account.name}`,
  ]);
  expect((await eventsOf(account.id)).filter((type) => /paused|resumed/.test(type))).toEqual([
    'account.paused',
    'account.resumed',
  ]);
});

test('an account is removed with its credentials, which are withdrawn at its provider', async () => {
  const { id, account, path, browser, member } = await place({ provider: 'telegram' });
  expect(browser.text).toContain('It cannot be undone');
  const { path: action, body } = browser.form('/remove');
  await browser.submit('/remove');
  expect(browser.text).toContain('The account is removed. Its credentials are erased.');
  expect(withdrawn).toEqual([account.id]);
  const row = db.selectFrom('accounts').select(['secret', 'name', 'removed_at']).where('id', '=', account.id);
  expect(await row.executeTakeFirst()).toEqual({ secret: null, name: '', removed_at: expect.any(Date) });
  expect(await deedsOn(account.id)).toEqual([`${member.name} removed an account: ${account.name} (telegram)`]);
  expect(await eventsOf(account.id)).toContain('account.removed');
  // Another person had the page of before.
  expect((await browser.request(action, { method: 'POST', body })).status).toBe(404);
  expect((await browser.request(path)).status).toBe(404);
  expect(await rooms.accounts.find(id, account.id)).toBeUndefined();
});
