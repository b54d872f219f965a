import { describe, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf } from '../support/client.ts';
import { secret } from '../support/secret.ts';
import { startService } from '../support/service.ts';

const { url, application, rooms, db } = await startService();
const { id: applicationId, token, key } = await application();
const call = clientOf(url, token);
const link = (given: Parameters<typeof linkAccount>[2] = {}) => linkAccount(rooms, applicationId, given);
const newScope = async (): Promise<string> => (await call('POST', '/v2/scopes', { name: 'North' })).body.id;

describe('reading accounts', () => {
  test('an account has these fields', async () => {
    const [password, proxyPassword] = [secret(), secret()];
    const { id } = await link({
      name: 'ann@mock.test',
      providerUserId: 'u-1',
      secret: {
        credentials: { password },
        proxy: { protocol: 'http', host: 'p.example', port: 3128, username: 'u', password: proxyPassword },
      },
    });
    const answer = await call('GET', `/v2/accounts/${id}`);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      object: 'Account',
      id,
      application_id: applicationId,
      user_id: 'u-1',
      provider: 'mock',
      name: 'ann@mock.test',
      status: 'running',
      status_reason: null,
      scope_id: null,
      created_at: expect.stringMatching(/Z$/),
      initial_sync: { status: 'completed', started_at: expect.any(String), progress: 1 },
      metadata: {},
      proxy: { protocol: 'http', host: 'p.example', port: 3128, username: 'u' },
    });
    expect(answer.text).not.toContain(password);
    expect(answer.text).not.toContain(proxyPassword);
    expect((await call('GET', `/v2/accounts/${id}/`)).status).toBe(200);
  });

  test('an unknown account, and one of another application, is a 404', async () => {
    const other = await application();
    const foreign = await linkAccount(rooms, other.id);
    for (const id of [foreign.id, 'acc_1', '%00'])
      for (const method of ['GET', 'PATCH', 'DELETE'])
        expect(await call(method, `/v2/accounts/${id}`, method === 'PATCH' ? {} : undefined)).toMatchObject({
          status: 404,
          body: { type: 'errors/invalid_resource_identifier' },
        });
    expect((await clientOf(url, other.token)('GET', `/v2/accounts/${foreign.id}`)).status).toBe(200);
  });

  test('a list is filtered by status, provider, scope and text, and read in pages', async () => {
    const own = await application();
    const client = clientOf(url, own.token);
    const scope_id = (await client('POST', '/v2/scopes', { name: 'a' })).body.id as string;
    const make = async (name: string, given: Parameters<typeof linkAccount>[2] = {}) =>
      (await linkAccount(rooms, own.id, { name, ...given })).id;
    const ann = await make('Ann_B@mock.test');
    const bob = await make('bob%@mock.test', { scopeId: scope_id });
    const cat = await make('cat@imap.test', { provider: 'imap', providerUserId: 'login-7' });
    await client('PATCH', `/v2/accounts/${cat}`, { paused: true });
    await db.updateTable('accounts').set({ status: 'disconnected' }).where('id', 'in', [bob, cat]).execute();
    const ids = async (query: string): Promise<string[]> =>
      (await client('GET', `/v2/accounts${query}`)).body.data.map(({ id }: { id: string }) => id).sort();
    expect(await ids('')).toEqual([ann, bob, cat].sort());
    expect(await ids('?status=running')).toEqual([ann]);
    expect(await ids('?status=disconnected')).toEqual([bob]);
    expect(await ids('?status=paused')).toEqual([cat]);
    expect(await ids('?status=error')).toEqual([]);
    expect(await ids('?provider=imap')).toEqual([cat]);
    expect(await ids(`?scope_id=${scope_id}`)).toEqual([bob]);
    expect(await ids('?scope_id=nothing')).toEqual([]);
    expect(await ids('?search=ANN')).toEqual([ann]);
    expect(await ids('?search=LOGIN-7')).toEqual([cat]);
    expect(await ids('?search=%25')).toEqual([bob]);
    expect(await ids('?search=_')).toEqual([ann]);
    expect(await ids('?search=%5C')).toEqual([]);
    expect(await ids('?provider=mock&search=mock')).toEqual([ann, bob].sort());
    const page = (await client('GET', '/v2/accounts?limit=2')).body;
    expect(page).toMatchObject({ object: 'AccountList', has_more: true });
    const rest = (await client('GET', `/v2/accounts?limit=2&cursor=${page.next_cursor}`)).body;
    expect([...page.data, ...rest.data].map(({ id }: { id: string }) => id).sort()).toEqual([ann, bob, cat].sort());
    expect((await client('GET', '/v2/accounts?limit=2&offset=2')).body).toEqual(rest);
  });

  test.each(['?status=gone', '?provider=GOOGLE', '?search=', '?search=%00', '?unknown=1', '?limit=1&limit=2'])(
    '%s is a 422',
    async (query) => {
      expect((await call('GET', `/v2/accounts${query}`)).status).toBe(422);
    },
  );

  test('a scoped key sees the accounts of its scope only', async () => {
    const [mine, theirs] = [await newScope(), await newScope()];
    const inside = await link({ scopeId: mine });
    const outside = [await link({ scopeId: theirs }), await link()];
    const client = clientOf(url, await key('scoped', mine));
    expect((await client('GET', '/v2/accounts')).body.data).toMatchObject([{ id: inside.id }]);
    expect((await client('GET', `/v2/accounts?scope_id=${theirs}`)).body.data).toEqual([]);
    expect((await client('GET', `/v2/accounts/${inside.id}`)).status).toBe(200);
    for (const { id } of outside)
      for (const [method, body] of [['GET'], ['PATCH', { paused: true }], ['DELETE']] as const)
        expect(await client(method, `/v2/accounts/${id}`, body)).toMatchObject({
          status: 403,
          body: { type: 'errors/resource_access_restricted' },
        });
    expect((await clientOf(url, await key('account'))('GET', '/v2/accounts?limit=100')).text).toContain(inside.id);
  });
});

describe('changing accounts', () => {
  test('metadata is replaced as a whole, by every kind of key', async () => {
    const scopeId = await newScope();
    const { id } = await link({ scopeId });
    for (const client of [call, clientOf(url, await key('account')), clientOf(url, await key('scoped', scopeId))]) {
      const metadata = { plan: 'pro', nested: { list: [1, null, 'é🚀'] }, backslash: '\\u0000' };
      expect(await client('PATCH', `/v2/accounts/${id}`, { metadata })).toMatchObject({
        status: 200,
        body: { metadata },
      });
      expect((await client('GET', `/v2/accounts/${id}`)).body.metadata).toEqual(metadata);
      expect((await client('PATCH', `/v2/accounts/${id}`, { metadata: {} })).body.metadata).toEqual({});
    }
  });

  test.each([
    ['metadata of more than 4096 bytes', { metadata: { text: 'é'.repeat(2_048) } }],
    ['metadata that is a list', { metadata: [] }],
    ['metadata with NUL', { metadata: { text: 'a\u0000' } }],
    ['metadata with NUL in a name', { metadata: { 'a\u0000': 1 } }],
    ['metadata with half of a surrogate pair', { metadata: { text: '\udc00' } }],
    ['no scope', { scope_id: null }],
    ['an unknown field', { name: 'new' }],
    ['paused as a text', { paused: 'yes' }],
  ])('%s is a 422', async (_, body) => {
    const { id } = await link();
    expect((await call('PATCH', `/v2/accounts/${id}`, body)).status).toBe(422);
  });

  test('an account is paused and continued, and keeps its status meanwhile', async () => {
    const { id } = await link();
    await db.updateTable('accounts').set({ status: 'error' }).where('id', '=', id).execute();
    const pausedAt = async () =>
      (await db.selectFrom('accounts').select('paused_at').where('id', '=', id).executeTakeFirstOrThrow()).paused_at;
    expect((await call('PATCH', `/v2/accounts/${id}`, { paused: true })).body.status).toBe('paused');
    const first = await pausedAt();
    expect((await call('PATCH', `/v2/accounts/${id}`, { paused: true })).body.status).toBe('paused');
    expect(await pausedAt()).toEqual(first);
    expect((await call('PATCH', `/v2/accounts/${id}`, {})).body.status).toBe('paused');
    expect((await call('PATCH', `/v2/accounts/${id}`, { paused: false })).body.status).toBe('error');
    expect(await pausedAt()).toBeNull();
  });

  test('a scope is assigned once, by a service key', async () => {
    const [first, second] = [await newScope(), await newScope()];
    const { id } = await link();
    const assign = (client: typeof call, scope_id: string) => client('PATCH', `/v2/accounts/${id}`, { scope_id });
    expect(await assign(clientOf(url, await key('account')), first)).toMatchObject({
      status: 403,
      body: { type: 'errors/insufficient_permissions' },
    });
    expect(await assign(call, first)).toMatchObject({ status: 200, body: { scope_id: first } });
    expect(await assign(clientOf(url, await key('scoped', first)), first)).toMatchObject({ status: 403 });
    expect(await assign(call, first)).toMatchObject({ status: 200, body: { scope_id: first } });
    expect(await assign(call, second)).toMatchObject({ status: 409, body: { type: 'errors/conflict' } });
    expect((await call('GET', `/v2/accounts/${id}`)).body.scope_id).toBe(first);
  });

  test('a refused change changes nothing', async () => {
    const { id } = await link();
    const body = { scope_id: 'scp_1', paused: true, metadata: { a: 1 } };
    expect((await call('PATCH', `/v2/accounts/${id}`, body)).status).toBe(404);
    expect((await call('GET', `/v2/accounts/${id}`)).body).toMatchObject({ status: 'running', metadata: {} });
  });
});

describe('removing accounts', () => {
  test('credentials and everything that was said about the account are erased', async () => {
    const { id } = await link({ name: 'erased@mock.test' });
    await call('PATCH', `/v2/accounts/${id}`, { metadata: { a: 1 } });
    await call('PUT', '/v2/limits', { account_id: id, windows: ['1/1m'] });
    const answer = await call('DELETE', `/v2/accounts/${id}`);
    expect(answer).toMatchObject({ status: 200, body: { object: 'AccountRemoved', id } });
    const row = await db.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    expect(row).toMatchObject({ secret: null, proxy: null, metadata: {}, name: '', provider_user_id: '' });
    await rooms.limits.refresh();
    expect(rooms.limits.shared.list().filter(({ target }) => target.account === id)).toEqual([]);
    for (const method of ['GET', 'DELETE']) expect((await call(method, `/v2/accounts/${id}`)).status).toBe(404);
    expect((await call('GET', '/v2/accounts?limit=100')).text).not.toContain(id);
  });

  test('a removed account can be linked again, more than once', async () => {
    for (let i = 0; i < 3; i++) {
      const { id } = await link({ name: 'again@mock.test' });
      expect((await call('DELETE', `/v2/accounts/${id}`)).status).toBe(200);
    }
    expect(await link({ name: 'again@mock.test' })).toMatchObject({ status: 'running' });
  });

  test('a scoped key removes an account of its scope', async () => {
    const scopeId = await newScope();
    const { id } = await link({ scopeId });
    const answer = await clientOf(url, await key('scoped', scopeId))('DELETE', `/v2/accounts/${id}`);
    expect(answer.status).toBe(200);
  });
});
