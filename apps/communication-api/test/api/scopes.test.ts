import { describe, expect, test } from 'vitest';
import { linkAccount } from '../support/accounts.ts';
import { clientOf, inDays } from '../support/client.ts';
import { startService } from '../support/service.ts';

const { url, application, rooms } = await startService();
const { id: applicationId, token, key } = await application();
const call = clientOf(url, token);
const newScope = async (): Promise<string> => (await call('POST', '/v2/scopes', { name: 'North' })).body.id;

test('a scope is created, read, renamed and listed', async () => {
  const created = await call('POST', '/v2/scopes', { name: 'North', reference: 'customer 7' });
  const scope = {
    object: 'AccountScope',
    id: expect.stringMatching(/^scp_/),
    application_id: applicationId,
    name: 'North',
    reference: 'customer 7',
    status: 'active',
    created_at: expect.stringMatching(/Z$/),
  };
  expect(created).toMatchObject({ status: 200 });
  expect(created.body).toEqual(scope);
  const path = `/v2/scopes/${created.body.id}`;
  expect((await call('GET', path)).body).toEqual(created.body);
  expect((await call('PATCH', path, { name: 'South' })).body).toEqual({ ...created.body, name: 'South' });
  expect((await call('PATCH', path, { reference: null })).body).toMatchObject({ name: 'South', reference: null });
  expect((await call('PATCH', path, {})).body).toMatchObject({ name: 'South', reference: null });
  expect((await call('POST', '/v2/scopes', { name: 'Third' })).body.reference).toBeNull();
  const page = (await call('GET', '/v2/scopes?limit=1')).body;
  expect(page).toMatchObject({ object: 'AccountScopeList', has_more: true });
  const next = (await call('GET', `/v2/scopes?limit=1&cursor=${page.next_cursor}`)).body;
  expect(next.data[0].id).not.toBe(page.data[0].id);
});

test.each([
  ['POST', '/v2/scopes', {}],
  ['POST', '/v2/scopes', { name: '' }],
  ['POST', '/v2/scopes', { name: 'a', status: 'disabled' }],
  ['POST', '/v2/scopes', { name: 'x'.repeat(201) }],
  ['POST', '/v2/scopes', { name: 'a', reference: '\u0000' }],
  ['GET', '/v2/scopes?name=a', undefined],
])('%s %s %j is a 422', async (method, path, body) => {
  expect((await call(method, path, body)).status).toBe(422);
});

test('only a service key reaches scopes', async () => {
  const id = await newScope();
  for (const other of [await key('account'), await key('scoped', id)])
    for (const [method, path] of [
      ['POST', '/v2/scopes'],
      ['GET', '/v2/scopes'],
      ['GET', `/v2/scopes/${id}`],
      ['PATCH', `/v2/scopes/${id}`],
      ['DELETE', `/v2/scopes/${id}`],
      ['POST', `/v2/scopes/${id}/enable`],
      ['POST', `/v2/scopes/${id}/disable`],
    ] as const)
      expect(await clientOf(url, other)(method, path)).toMatchObject({
        status: 403,
        body: { type: 'errors/insufficient_permissions' },
      });
});

describe('the states of a scope', () => {
  const states = {
    active: async () => {
      const id = await newScope();
      return { id, scoped: await key('scoped', id) };
    },
    disabled: async () => {
      const made = await states.active();
      await call('POST', `/v2/scopes/${made.id}/disable`);
      return made;
    },
    deleted: async () => {
      const made = await states.active();
      await call('DELETE', `/v2/scopes/${made.id}`);
      return made;
    },
    foreign: async () => {
      const other = await application();
      const { body } = await clientOf(url, other.token)('POST', '/v2/scopes', { name: 'theirs' });
      return { id: body.id as string, scoped: await other.key('scoped', body.id) };
    },
  };
  const newKey = (scope_id: string) => ({ name: 'k', expires_at: inDays(1), access: { type: 'scope', scope_id } });
  const operations = {
    get: (id: string) => call('GET', `/v2/scopes/${id}`),
    rename: (id: string) => call('PATCH', `/v2/scopes/${id}`, { name: 'New' }),
    enable: (id: string) => call('POST', `/v2/scopes/${id}/enable`),
    disable: (id: string) => call('POST', `/v2/scopes/${id}/disable`),
    delete: (id: string) => call('DELETE', `/v2/scopes/${id}`),
    'create a key': (id: string) => call('POST', '/v2/api-keys', newKey(id)),
    'assign an account': async (id: string) =>
      call('PATCH', `/v2/accounts/${(await linkAccount(rooms, applicationId)).id}`, { scope_id: id }),
  };
  type State = keyof typeof states;

  test.each<[State, keyof typeof operations, number, string]>([
    ['active', 'get', 200, 'active'],
    ['active', 'rename', 200, 'active'],
    ['active', 'enable', 200, 'active'],
    ['active', 'disable', 200, 'disabled'],
    ['active', 'delete', 200, 'deleted'],
    ['active', 'create a key', 200, 'active'],
    ['active', 'assign an account', 200, 'active'],
    ['disabled', 'get', 200, 'disabled'],
    ['disabled', 'rename', 200, 'disabled'],
    ['disabled', 'enable', 200, 'active'],
    ['disabled', 'disable', 200, 'disabled'],
    ['disabled', 'delete', 200, 'deleted'],
    ['disabled', 'create a key', 422, 'disabled'],
    ['disabled', 'assign an account', 422, 'disabled'],
    ['deleted', 'get', 404, 'deleted'],
    ['deleted', 'rename', 404, 'deleted'],
    ['deleted', 'enable', 404, 'deleted'],
    ['deleted', 'disable', 404, 'deleted'],
    ['deleted', 'delete', 404, 'deleted'],
    ['deleted', 'create a key', 404, 'deleted'],
    ['deleted', 'assign an account', 404, 'deleted'],
    ['foreign', 'get', 404, 'deleted'],
    ['foreign', 'rename', 404, 'deleted'],
    ['foreign', 'enable', 404, 'deleted'],
    ['foreign', 'disable', 404, 'deleted'],
    ['foreign', 'delete', 404, 'deleted'],
    ['foreign', 'create a key', 404, 'deleted'],
    ['foreign', 'assign an account', 404, 'deleted'],
  ])('%s, %s: %i, and the scope is %s', async (state, operation, status, next) => {
    const { id } = await states[state]();
    expect((await operations[operation](id)).status).toBe(status);
    const after = await call('GET', `/v2/scopes/${id}`);
    expect(after.status === 404 ? 'deleted' : after.body.status).toBe(next);
  });

  test.each<[State, number, string | undefined]>([
    ['active', 200, undefined],
    ['disabled', 403, 'errors/resource_access_restricted'],
    ['deleted', 401, 'errors/invalid_credentials'],
    ['foreign', 200, undefined],
  ])('a key of a scope that is %s: %i %s', async (state, status, type) => {
    const { scoped } = await states[state]();
    const answer = await clientOf(url, scoped)('GET', '/v2/accounts');
    expect(answer).toMatchObject({ status, body: type === undefined ? {} : { type } });
  });

  test('a key stops and starts at once with its scope', async () => {
    const { id, scoped } = await states.active();
    const status = async () => (await clientOf(url, scoped)('GET', '/v2/accounts')).status;
    expect(await status()).toBe(200);
    await call('POST', `/v2/scopes/${id}/disable`);
    expect(await status()).toBe(403);
    await call('POST', `/v2/scopes/${id}/enable`);
    expect(await status()).toBe(200);
    await call('DELETE', `/v2/scopes/${id}`);
    expect(await status()).toBe(401);
  });

  test('a scope with an account is not deleted, and its keys stay; without the account it is deleted', async () => {
    const { id, scoped } = await states.active();
    const account = await linkAccount(rooms, applicationId, { scopeId: id });
    expect(await call('DELETE', `/v2/scopes/${id}`)).toMatchObject({ status: 409, body: { type: 'errors/conflict' } });
    expect((await clientOf(url, scoped)('GET', '/v2/accounts')).body.data).toHaveLength(1);
    await call('DELETE', `/v2/accounts/${account.id}`);
    expect((await call('DELETE', `/v2/scopes/${id}`)).body).toEqual({ object: 'AccountScopeDeleted', id });
    expect((await call('GET', '/v2/scopes?limit=100')).text).not.toContain(id);
  });
});
