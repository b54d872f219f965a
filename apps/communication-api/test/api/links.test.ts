import { expect, test } from 'vitest';
import { json } from '../../src/db/json.ts';
import { newId } from '../../src/domain/ids.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';

const { url, application, db, rooms } = await startService({ AUTH_URL: 'https://auth.example' });
const { id: applicationId, token, key } = await application();
const other = await application();
const production = await application('production');

const inMinutes = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString();
const LINK = { expires_on: inMinutes(10), redirect_uri: 'https://app.example/cb?x=1' };

async function post(body: object, apiKey = token): Promise<{ status: number; body: Record<string, string> }> {
  const answer = await fetch(`${url}/v2/auth/link`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, string> };
}

async function scope(status: 'active' | 'disabled', application = applicationId): Promise<string> {
  const id = newId('scp', Date.now());
  await db
    .insertInto('scopes')
    .values({ id, application_id: application, name: 'Scope', status, created_at: new Date() })
    .execute();
  return id;
}

async function account(scopeId: string | null = null, provider = 'mock', application = applicationId): Promise<string> {
  const providerUserId = `${newId('acc', Date.now())}@mock.test`;
  const secret = { credentials: { drafts: true } };
  const row = await rooms.accounts.insert(application, { provider, providerUserId, name: 'a', scopeId, secret });
  return row?.id ?? '';
}

const linkRow = (link: string | undefined) => rooms.links.resolve(link?.split('/').at(-1) ?? '');

test('a link has an address of the wizard, and its token is stored as a hash only', async () => {
  const { status, body } = await post({ ...LINK, providers: 'mock', state: 'u42' });
  expect(status).toBe(200);
  expect(body).toEqual({
    object: 'AuthLink',
    id: expect.stringMatching(/^lnk_/),
    link: expect.stringMatching(/^https:\/\/auth\.example\/auth\/l\/[0-9a-f]{64}$/),
    expires_on: LINK.expires_on,
  });
  const row = await linkRow(body.link);
  expect(row).toMatchObject({ id: body.id, providers: ['mock'], client_state: 'u42', status: 'open', scope_id: null });
  expect(JSON.stringify(row)).not.toContain(body.link?.split('/').at(-1));
});

test('every part of config is accepted, and a proxy password is stored sealed', async () => {
  const password = secret();
  const config = {
    mock: { custom_proxy: { protocol: 'socks5', host: 'p.example', port: 1080, username: 'u', password } },
    whatsapp: { auto_proxy_config: { country: 'FR' } },
    linkedin: { auto_proxy_config: { ip: '192.0.2.1' } },
    instagram: { custom_proxy: { protocol: 'http', host: '192.0.2.7', port: 1 } },
    imap: { initial_sync_enable: true },
    global: {
      allow_user_proxy_override: true,
      allow_user_country_override: false,
      wait_initial_sync: true,
      login_hint: 'ann@mock.test',
    },
  };
  const { status, body } = await post({ ...LINK, providers: '*', config });
  expect([status, body.detail]).toEqual([200, undefined]);
  const row = await linkRow(body.link);
  expect(row && rooms.links.configOf(row)).toEqual(config);
  expect(Buffer.from(row?.config ?? []).toString('latin1')).not.toContain(password);
});

test('a form makes the same link as JSON', async () => {
  const form = new URLSearchParams([
    ['providers', 'mock'],
    ['expires_on', LINK.expires_on],
    ['redirect_uri', LINK.redirect_uri],
    ['config[mock][custom_proxy][protocol]', 'http'],
    ['config[mock][custom_proxy][host]', 'p.example'],
    ['config[mock][custom_proxy][port]', '8080'],
    ['config[global][wait_initial_sync]', 'true'],
  ]);
  const answer = await fetch(`${url}/v2/auth/link`, { method: 'POST', headers: { 'x-api-key': token }, body: form });
  const body = (await answer.json()) as Record<string, string>;
  expect([answer.status, body.detail]).toEqual([200, undefined]);
  const row = await linkRow(body.link);
  expect(row && rooms.links.configOf(row)).toEqual({
    mock: { custom_proxy: { protocol: 'http', host: 'p.example', port: 8080 } },
    global: { wait_initial_sync: true },
  });
});

test.each([
  ['neither variant', {}, /either providers/],
  ['both variants', { providers: 'mock', account_id: 'acc_1' }, /either providers/],
  ['a wildcard in an array', { providers: ['*'] }, /wildcard/],
  ['upper case', { providers: 'MOCK' }, /"mock"/],
  ['a duplicate', { providers: ['mock', 'mock'] }, /twice/],
  ['two selectors in a string', { providers: 'mock,imap' }, /one selector/],
  ['an unknown field', { providers: 'mock', provider: 'x' }, /unknown field "provider"/],
  ['an end in the past', { providers: 'mock', expires_on: inMinutes(-1) }, /future/],
  ['an end too far away', { providers: 'mock', expires_on: inMinutes(7 * 24 * 60 + 1) }, /7 days/],
  ['an end without a time zone', { providers: 'mock', expires_on: '2026-11-21T12:10:00' }, /expires_on.*ISO 8601/],
  ['a redirect without https', { providers: 'mock', redirect_uri: 'http://app.example/' }, /https/],
  ['a redirect with a fragment', { providers: 'mock', redirect_uri: 'https://app.example/#a' }, /fragment/],
  ['a domain that is not verified', { providers: 'mock', domain: 'connect.app.example' }, /domain/],
  ['a state that cannot be stored', { providers: 'mock', state: 'a\0b' }, /state/],
  ['an unknown provider in config', { providers: 'mock', config: { gmail: {} } }, /config: unknown field "gmail"/],
  [
    'a bad proxy protocol',
    { providers: 'mock', config: { mock: { custom_proxy: { protocol: 'ftp', host: 'a', port: 1 } } } },
    /config\.mock\.custom_proxy\.protocol/,
  ],
  [
    'a bad proxy host',
    { providers: 'mock', config: { mock: { custom_proxy: { protocol: 'http', host: 'http://a', port: 1 } } } },
    /host/,
  ],
  [
    'a bad proxy port',
    { providers: 'mock', config: { mock: { custom_proxy: { protocol: 'http', host: 'a', port: 65536 } } } },
    /port/,
  ],
  [
    'an automatic proxy for a provider without one',
    { providers: 'mock', config: { mock: { auto_proxy_config: { country: 'FR' } } } },
    /auto_proxy_config/,
  ],
  [
    'a country that does not exist',
    { providers: 'mock', config: { linkedin: { auto_proxy_config: { country: 'XX' } } } },
    /ISO 3166/,
  ],
  [
    'country and ip',
    { providers: 'mock', config: { linkedin: { auto_proxy_config: { country: 'FR', ip: '192.0.2.1' } } } },
    /either country or ip/,
  ],
  [
    'the sync switch of imap elsewhere',
    { providers: 'mock', config: { mock: { initial_sync_enable: true } } },
    /initial_sync_enable/,
  ],
  ['a scope at a reconnection', { account_id: 'acc_1', scope_id: 'scp_1' }, /scope_id/],
])('%s is a 422', async (_, body, detail) => {
  const answer = await post({ ...LINK, ...body });
  expect(answer.body).toMatchObject({ status: 422, type: 'errors/unprocessable_entity' });
  expect(answer.body.detail).toMatch(detail);
});

test.each([
  ['expires_on', { providers: 'mock', redirect_uri: LINK.redirect_uri }],
  ['redirect_uri', { providers: 'mock', expires_on: LINK.expires_on }],
])('%s is required', async (field, body) => {
  expect((await post(body)).body).toMatchObject({ status: 422, detail: `${field}: required` });
});

test('a provider without a connector is a 403, and the mock is for development only', async () => {
  expect((await post({ ...LINK, providers: ['mock', 'google'] })).body).toMatchObject({
    status: 403,
    type: 'errors/feature_not_subscribed',
    detail: expect.stringContaining('Installed here: mock'),
  });
  for (const providers of ['mock', '*:CALENDAR'])
    expect((await post({ ...LINK, providers }, production.token)).body).toMatchObject({
      status: 403,
      type: 'errors/feature_not_subscribed',
    });
});

test('a loopback redirect is for development only, and a list of redirects is respected', async () => {
  const loopback = { ...LINK, providers: 'mock', redirect_uri: 'http://localhost:3000/cb' };
  expect((await post(loopback)).status).toBe(200);
  const listed = await application();
  await db
    .updateTable('applications')
    .set({ redirect_uris: ['https://app.example/cb'] })
    .where('id', '=', listed.id)
    .execute();
  expect((await post({ ...LINK, providers: 'mock' }, listed.token)).status).toBe(200);
  expect((await post(loopback, listed.token)).body).toMatchObject({ status: 422 });
});

test('a verified domain of the application is the host of the link', async () => {
  const hosts = { 'ok.app.example': 'verified', 'new.app.example': 'pending', 'bad.app.example': 'failing' } as const;
  for (const [host, status] of Object.entries(hosts))
    await db
      .insertInto('domains')
      .values({
        id: newId('dom', Date.now()),
        application_id: applicationId,
        host,
        purpose: 'auth',
        status,
        created_at: new Date(),
      })
      .execute();
  const { body } = await post({ ...LINK, providers: 'mock', domain: 'OK.app.example' });
  expect(body.link).toMatch(/^https:\/\/ok\.app\.example\/auth\/l\//);
  for (const domain of ['new.app.example', 'bad.app.example'])
    expect((await post({ ...LINK, providers: 'mock', domain })).status).toBe(422);
  expect((await post({ ...LINK, providers: 'mock', domain: 'ok.app.example' }, other.token)).status).toBe(422);
});

test('a reconnection takes the provider and the scope of its account', async () => {
  const scopeId = await scope('active');
  const accountId = await account(scopeId);
  for (const apiKey of [token, await key('account'), await key('scoped', scopeId)]) {
    const { status, body } = await post({ ...LINK, account_id: accountId }, apiKey);
    expect([status, body.detail]).toEqual([200, undefined]);
    expect(await linkRow(body.link)).toMatchObject({ account_id: accountId, providers: ['mock'], scope_id: scopeId });
  }
});

test('an account of another application is a 404, and one outside the scope of the key a 403', async () => {
  const accountId = await account();
  expect((await post({ ...LINK, account_id: accountId }, other.token)).body).toMatchObject({
    status: 404,
    type: 'errors/invalid_resource_identifier',
  });
  const scoped = await key('scoped', await scope('active'));
  expect((await post({ ...LINK, account_id: accountId }, scoped)).body).toMatchObject({
    status: 403,
    type: 'errors/resource_access_restricted',
  });
  expect((await post({ ...LINK, account_id: 'nonsense' })).status).toBe(404);
});

test('an account of a provider that is not installed cannot be reconnected', async () => {
  const accountId = await account(null, 'google');
  expect((await post({ ...LINK, account_id: accountId })).body).toMatchObject({
    status: 403,
    type: 'errors/feature_not_subscribed',
  });
});

test('the key decides the scope: a scoped key uses its own, a service key may choose one', async () => {
  const [scopeId, disabled, foreign] = [
    await scope('active'),
    await scope('disabled'),
    await scope('active', other.id),
  ];
  const scoped = await key('scoped', scopeId);
  expect(await linkRow((await post({ ...LINK, providers: 'mock' }, scoped)).body.link)).toMatchObject({
    scope_id: scopeId,
  });
  const chosen = await post({ ...LINK, providers: 'mock', scope_id: scopeId });
  expect(await linkRow(chosen.body.link)).toMatchObject({ scope_id: scopeId });
  for (const apiKey of [scoped, await key('account')])
    expect((await post({ ...LINK, providers: 'mock', scope_id: scopeId }, apiKey)).body).toMatchObject({
      status: 403,
      type: 'errors/insufficient_permissions',
    });
  expect((await post({ ...LINK, providers: 'mock', scope_id: disabled })).body).toMatchObject({ status: 422 });
  for (const scope_id of [foreign, 'nonsense'])
    expect((await post({ ...LINK, providers: 'mock', scope_id })).body).toMatchObject({ status: 404 });
});

test('a disabled scope has no new links', async () => {
  const disabled = await scope('active');
  const scoped = await key('scoped', disabled);
  await rooms.scopes.setStatus(applicationId, disabled, 'disabled');
  expect((await post({ ...LINK, account_id: await account(disabled) })).body).toMatchObject({ status: 422 });
  expect((await post({ ...LINK, providers: 'mock' }, scoped)).body).toMatchObject({
    status: 403,
  });
});

test('a request without a key is a 401', async () => {
  const answer = await fetch(`${url}/v2/auth/link`, { method: 'POST', body: '{}' });
  expect(answer.status).toBe(401);
});

test('a removed account cannot be reconnected', async () => {
  const accountId = await account();
  await db
    .updateTable('accounts')
    .set({ removed_at: new Date(), secret: null, metadata: json({}) })
    .where('id', '=', accountId)
    .execute();
  expect((await post({ ...LINK, account_id: accountId })).status).toBe(404);
});

test('the document describes the operation', async () => {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as {
    paths: Record<string, { post?: { operationId: string; responses: object } }>;
  };
  const operation = document.paths['/v2/auth/link']?.post;
  expect(operation?.operationId).toBe('createAuthLink');
  expect(Object.keys(operation?.responses ?? {})).toEqual(expect.arrayContaining(['200', '403', '404', '422']));
  expect(Object.keys(document.paths).filter((path) => path.startsWith('/auth'))).toEqual([]);
});
