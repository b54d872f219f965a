import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { hashOf, newToken } from '../../src/domain/key-token.ts';
import { clientOf, inDays } from '../support/client.ts';
import { startService } from '../support/service.ts';

const { url, application, rooms, db } = await startService({ TRUSTED_PROXIES: '127.0.0.1' });
const { id: applicationId, token, key } = await application('production');
const call = clientOf(url, token);
const scope = async (): Promise<string> => (await call('POST', '/v2/scopes', { name: 'North' })).body.id;
const global = { type: 'global' };

/** Tests of wrong keys have an address each, so that they do not use each other's allowance. */
const from = (address: string) => ({ 'x-forwarded-for': address });

describe('creating keys', () => {
  test('a global key is created, and its token authenticates', async () => {
    const answer = await call('POST', '/v2/api-keys', { name: 'worker', expires_at: inDays(30), access: global });
    expect(answer.status).toBe(200);
    expect(Object.keys(answer.body)).toEqual(['object', 'id', 'api_key']);
    expect(answer.body).toMatchObject({ object: 'ApiKey', id: expect.stringMatching(/^key_/) });
    expect(answer.body.api_key).toMatch(/^ck_acc_live_/);
    expect((await clientOf(url, answer.body.api_key)('GET', '/v2/accounts')).status).toBe(200);
  });

  test('a key of a scope is created for an active scope', async () => {
    const scope_id = await scope();
    const answer = await call('POST', '/v2/api-keys', {
      name: 'worker',
      expires_at: inDays(30),
      access: { type: 'scope', scope_id },
    });
    expect(answer.body.api_key).toMatch(/^ck_scp_live_/);
    const listed = await call('GET', `/v2/api-keys?account_scope_id=${scope_id}`);
    expect(listed.body.data).toMatchObject([{ id: answer.body.id, role: 'scoped', account_scope_id: scope_id }]);
  });

  test('a form is taken too', async () => {
    const answer = await fetch(`${url}/v2/api-keys`, {
      method: 'POST',
      headers: { 'x-api-key': token },
      body: new URLSearchParams({ name: 'form', expires_at: inDays(1), 'access[type]': 'global' }),
    });
    expect(answer.status).toBe(200);
  });

  test('the token is stored as its digest only', async () => {
    const { body } = await call('POST', '/v2/api-keys', { name: 'a', expires_at: inDays(1), access: global });
    const row = await db.selectFrom('api_keys').selectAll().where('id', '=', body.id).executeTakeFirstOrThrow();
    expect(row.token_hash).toBe(hashOf(body.api_key));
    expect(JSON.stringify(row)).not.toContain(body.api_key);
    expect((await call('GET', '/v2/api-keys')).text).not.toContain(body.api_key);
  });

  test.each([
    ['name is missing', { name: undefined }, 'name: required'],
    ['expires_at is missing', { expires_at: undefined }, 'expires_at: required'],
    ['access is missing', { access: undefined }, 'access'],
    ['name is empty', { name: '' }, 'name: must have at least 1 character'],
    ['name is long', { name: 'a'.repeat(201) }, 'name: must have at most 200 characters'],
    ['name has a control character', { name: 'a\u0000' }, 'name: must be text without control characters'],
    ['name has half of a surrogate pair', { name: 'a\ud800' }, 'name: must be text without control characters'],
    ['a field is unknown', { role: 'service' }, 'unknown field "role"'],
    ['access is a service key', { access: { type: 'service' } }, 'access.type'],
    ['the scope is missing', { access: { type: 'scope' } }, 'access.scope_id: required'],
    ['a global key has a scope', { access: { type: 'global', scope_id: 'scp_1' } }, 'access: unknown field "scope_id"'],
    ['expires_at has no time', { expires_at: '2030-01-01' }, 'expires_at'],
    ['expires_at has passed', { expires_at: inDays(-1) }, 'expires_at: must be in the future'],
    ['expires_at is more than five years away', { expires_at: inDays(1_828) }, 'at most 5 years'],
  ])('%s: 422', async (_, change, detail) => {
    const answer = await call('POST', '/v2/api-keys', {
      name: 'worker',
      expires_at: inDays(30),
      access: global,
      ...change,
    });
    expect(answer).toMatchObject({ status: 422, body: { type: 'errors/unprocessable_entity' } });
    expect(answer.body.detail).toContain(detail);
  });

  test('five years are accepted', async () => {
    const expires_at = new Date();
    expires_at.setUTCFullYear(expires_at.getUTCFullYear() + 5);
    expect((await call('POST', '/v2/api-keys', { name: 'long', expires_at, access: global })).status).toBe(200);
  });

  test('a scope that is unknown or of another application is a 404', async () => {
    const other = await application();
    const foreign = (await clientOf(url, other.token)('POST', '/v2/scopes', { name: 'x' })).body.id;
    for (const scope_id of [foreign, 'scp_1', 'nothing']) {
      const answer = await call('POST', '/v2/api-keys', {
        name: 'a',
        expires_at: inDays(1),
        access: { type: 'scope', scope_id },
      });
      expect(answer).toMatchObject({ status: 404, body: { type: 'errors/invalid_resource_identifier' } });
    }
  });

  test('only a service key manages keys', async () => {
    for (const other of [await key('account'), await key('scoped', await scope())]) {
      const client = clientOf(url, other);
      for (const answer of [
        await client('POST', '/v2/api-keys', {}),
        await client('GET', '/v2/api-keys'),
        await client('DELETE', '/v2/api-keys/key_1'),
      ])
        expect(answer).toMatchObject({ status: 403, body: { type: 'errors/insufficient_permissions' } });
    }
  });
});

describe('listing keys', () => {
  test('keys are listed newest first, by access, in pages, without service keys', async () => {
    const own = await application('development');
    const client = clientOf(url, own.token);
    const scope_id = (await client('POST', '/v2/scopes', { name: 'South' })).body.id;
    const made: string[] = [];
    for (const access of [global, { type: 'scope', scope_id }, global, { type: 'scope', scope_id }])
      made.unshift(
        (await client('POST', '/v2/api-keys', { name: 'n', expires_at: inDays(1), access })).body.id as string,
      );
    const ids = async (query: string): Promise<string[]> =>
      (await client('GET', `/v2/api-keys${query}`)).body.data.map(({ id }: { id: string }) => id);
    // Ids of one millisecond are in any order.
    expect((await ids('')).sort()).toEqual([...made].sort());
    expect(await ids('?access=global')).toHaveLength(2);
    expect((await ids('?access=scope')).sort()).toEqual((await ids(`?account_scope_id=${scope_id}`)).sort());
    expect(await ids('?account_scope_id=scp_0')).toEqual([]);
    expect(await ids(`?access=global&account_scope_id=${scope_id}`)).toEqual([]);
    const all = await ids('');
    expect([...(await ids('?limit=3')), ...(await ids('?limit=3&offset=3'))]).toEqual(all);
    const first = (await client('GET', '/v2/api-keys?limit=3')).body;
    expect(first).toMatchObject({ object: 'ApiKeyList', has_more: true });
    const second = (await client('GET', `/v2/api-keys?limit=3&cursor=${first.next_cursor}`)).body;
    expect(second).toMatchObject({ has_more: false, next_cursor: null, data: [{ id: all[3] }] });
  });

  test('a listed key has these fields', async () => {
    const own = await application('development');
    const client = clientOf(url, own.token);
    const expires_at = inDays(2);
    const { body } = await client('POST', '/v2/api-keys', { name: 'worker', expires_at, access: global });
    expect((await client('GET', '/v2/api-keys')).body.data).toEqual([
      {
        object: 'ApiKey',
        id: body.id,
        application_id: own.id,
        name: 'worker',
        prefix: body.api_key.slice(0, 'ck_acc_dev_'.length + 4),
        role: 'account',
        account_scope_id: null,
        issued_at: expect.stringMatching(/^\d{4}-.*Z$/),
        expires_at,
        last_used_at: null,
      },
    ]);
  });

  test.each([
    '?access=service',
    '?limit=0',
    '?limit=101',
    '?offset=-1',
    '?cursor=x',
    '?nothing=1',
    '?offset=0&cursor=a',
  ])('%s is a 422', async (query) => {
    expect((await call('GET', `/v2/api-keys${query}`)).status).toBe(422);
  });
});

describe('the states of a key', () => {
  const states = {
    active: async () => {
      const { id, token } = await rooms.keys.create(applicationId, 'production', {
        name: 'a',
        role: 'account',
        scopeId: null,
        expiresAt: new Date(Date.now() + 60_000),
      });
      expect((await clientOf(url, token)('GET', '/v2/accounts')).status).toBe(200);
      return { id, token };
    },
    expired: () =>
      rooms.keys.create(applicationId, 'production', {
        name: 'a',
        role: 'account',
        scopeId: null,
        expiresAt: new Date(Date.now() - 1),
      }),
    revoked: async () => {
      const made = await states.active();
      await call('DELETE', `/v2/api-keys/${made.id}`);
      return made;
    },
  };
  type State = keyof typeof states;

  test.each<[State, number, string | undefined]>([
    ['active', 200, undefined],
    ['expired', 401, 'api/expired_authorization'],
    ['revoked', 401, 'errors/invalid_credentials'],
  ])('a request with a key that is %s is a %i %s', async (state, status, type) => {
    const made = await states[state]();
    const answer = await clientOf(url, made.token)('GET', '/v2/accounts', undefined, from('192.0.2.1'));
    expect(answer).toMatchObject({ status, body: type === undefined ? {} : { type } });
  });

  test.each<[State, boolean]>([
    ['active', true],
    ['expired', true],
    ['revoked', false],
  ])('a key that is %s is listed: %s', async (state, isListed) => {
    const { id } = await states[state]();
    const { body } = await call('GET', '/v2/api-keys?limit=100');
    expect(body.data.some((each: { id: string }) => each.id === id)).toBe(isListed);
  });

  test.each<[State, number]>([
    ['active', 200],
    ['expired', 200],
    ['revoked', 404],
  ])('deleting a key that is %s is a %i, and the key is revoked afterwards', async (state, status) => {
    const made = await states[state]();
    const answer = await call('DELETE', `/v2/api-keys/${made.id}`);
    expect(answer.status).toBe(status);
    if (status === 200) expect(answer.body).toEqual({ object: 'ApiKeyDeleted', id: made.id });
    const used = await clientOf(url, made.token)('GET', '/v2/accounts', undefined, from('192.0.2.2'));
    expect(used).toMatchObject({ status: 401, body: { type: 'errors/invalid_credentials' } });
  });

  test('a service key, a key of another application and an unknown id are each a 404', async () => {
    const other = await application();
    const foreign = await rooms.keys.create(other.id, 'development', {
      name: 'a',
      role: 'account',
      scopeId: null,
      expiresAt: new Date(Date.now() + 60_000),
    });
    const service = await db
      .selectFrom('api_keys')
      .select('id')
      .where('token_hash', '=', hashOf(token))
      .executeTakeFirstOrThrow();
    for (const id of [service.id, foreign.id, 'key_1', '%00'])
      expect(await call('DELETE', `/v2/api-keys/${id}`)).toMatchObject({
        status: 404,
        body: { type: 'errors/invalid_resource_identifier' },
      });
    expect((await clientOf(url, foreign.token)('GET', '/v2/accounts')).status).toBe(200);
    expect((await call('GET', '/v2/api-keys')).status).toBe(200);
  });
});

describe('authentication', () => {
  test('a request without a key is answered with the header to use', async () => {
    for (const client of [clientOf(url, undefined), clientOf(url, '')])
      expect(await client('GET', '/v2/accounts')).toMatchObject({
        status: 401,
        body: { type: 'errors/missing_credentials', detail: expect.stringContaining('X-API-KEY') },
      });
  });

  test.each([
    ['of the right form', newToken('service', 'production')],
    ['with a wrong checksum', `${newToken('service', 'production').slice(0, -6)}000000`],
    ['that is only a prefix', 'ck_svc_live_4fGh'],
    ['that is an id', 'key_01kaj6q2m0e7r8s9t0v1w2x3y4'],
  ])('an unknown key %s is a 401', async (_, wrong) => {
    const answer = await clientOf(url, wrong)('GET', '/v2/accounts', undefined, from('192.0.2.3'));
    expect(answer).toMatchObject({ status: 401, body: { type: 'errors/invalid_credentials' } });
  });

  test('two keys in one request are a 401', async () => {
    const answer = await clientOf(url, `${token}, ${token}`)('GET', '/v2/accounts', undefined, from('192.0.2.4'));
    expect(answer.status).toBe(401);
  });

  test('the 21st wrong key in a minute is a 429; a correct key of the same address works, and so do other addresses', async () => {
    const wrong = clientOf(url, newToken('account', 'production'));
    const statuses: number[] = [];
    for (let i = 0; i < 20; i++)
      statuses.push((await wrong('GET', '/v2/accounts', undefined, from('192.0.2.9'))).status);
    expect(new Set(statuses)).toEqual(new Set([401]));
    const refused = await wrong('GET', '/v2/accounts', undefined, from('192.0.2.9'));
    expect(refused).toMatchObject({ status: 429, body: { type: 'api/too_many_requests' } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
    expect((await call('GET', '/v2/accounts', undefined, from('192.0.2.9'))).status).toBe(200);
    expect((await wrong('GET', '/v2/accounts', undefined, from('192.0.2.10'))).status).toBe(401);
  });

  test('missing and expired keys do not count as wrong', async () => {
    const { token: expired } = await rooms.keys.create(applicationId, 'production', {
      name: 'a',
      role: 'account',
      scopeId: null,
      expiresAt: new Date(Date.now() - 1),
    });
    for (let i = 0; i < 25; i++) {
      const client = clientOf(url, i % 2 === 0 ? undefined : expired);
      expect((await client('GET', '/v2/accounts', undefined, from('192.0.2.20'))).status).toBe(401);
    }
  });

  test('the last use of a key is written soon, and then not for a minute', async () => {
    const { id, token: used } = await rooms.keys.create(applicationId, 'production', {
      name: 'used',
      role: 'account',
      scopeId: null,
      expiresAt: new Date(Date.now() + 60_000),
    });
    const lastUse = async (): Promise<Date | null> =>
      (await db.selectFrom('api_keys').select('last_used_at').where('id', '=', id).executeTakeFirstOrThrow())
        .last_used_at;
    // Uses are collected until a timer ends, and no request waits for it.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    await clientOf(url, used)('GET', '/v2/accounts');
    expect(await lastUse()).toBeNull();
    vi.advanceTimersByTime(1_000);
    vi.useRealTimers();
    await expect.poll(lastUse).not.toBeNull();
    const first = await lastUse();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await clientOf(url, used)('GET', '/v2/accounts');
    vi.advanceTimersByTime(1_000);
    vi.useRealTimers();
    // This is answered after whatever the timer has begun.
    await rooms.keys.close();
    expect(await lastUse()).toEqual(first);
  });
});
