/** Routes that count by API key, application or address. */
import { startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { startAdminGateway } from '../support/admin.ts';
import { ratesOf } from '../support/gateway.ts';

const upstream = await startUpstream();

const keys = [
  { name: 'one', token: 'key-one', application: 'app_1', plan: 'pro' },
  { name: 'two', token: 'key-two', application: 'app_1', plan: 'pro' },
  { name: 'three', token: 'key-three', application: 'app_2' },
];
const gateway = await startAdminGateway(upstream.url, {
  keys,
  clientAddress: { trustedProxies: ['loopback'] },
  accounts: [{ id: 'acc_1', application: 'app_1' }],
  routes: [
    { route: 'GET /key', account: 'key' },
    { route: 'GET /application', account: 'application' },
    { route: 'GET /address', account: 'address' },
    { route: 'GET /named', account: 'header.x-account' },
    { route: 'POST /mail', account: 'address', idempotent: true },
    { route: 'GET /none', account: 'none' },
  ],
  limits: {
    default: { allMethods: ['2/1m'] },
    plans: { pro: { allMethods: ['3/1m'] } },
    accounts: { 'key:three': { allMethods: ['1/1m'] }, 'address:192.0.2.9': { allMethods: ['5/1m'] } },
  },
  log: { account: true },
});

const ask = (path: string, key: string, address = '192.0.2.1', more: Record<string, string> = {}) =>
  gateway.ask(path === '/mail' ? 'POST' : 'GET', path, { 'x-api-key': key, 'x-forwarded-for': address, ...more });

/** The limit, and what is left of it. */
const left = async (...args: Parameters<typeof ask>) => {
  const { limit, remaining } = ratesOf(await ask(...args));
  return `${remaining} of ${limit}`;
};

const admin = async (path: string) => {
  const { status, text } = await gateway.admin('GET', path);
  return { status, value: JSON.parse(text) };
};

describe('a route counts by', () => {
  it('key: each has its own count, with the limits of its plan or its own', async () => {
    expect(await left('/key', 'key-one')).toBe('2 of 3');
    expect(await left('/key', 'key-two')).toBe('2 of 3');
    expect(await left('/key', 'key-one')).toBe('1 of 3');
    expect(await left('/key', 'key-three')).toBe('0 of 1');
    expect((await ask('/key', 'key-three')).status).toBe(429);
  });

  it('application: its keys share a count', async () => {
    expect(await left('/application', 'key-one')).toBe('2 of 3');
    expect(await left('/application', 'key-two')).toBe('1 of 3');
    expect(await left('/application', 'key-three')).toBe('1 of 2');
  });

  it('address: of any key, behind trusted proxies, and by the prefix of IPv6', async () => {
    expect(await left('/address', 'key-one', '192.0.2.1')).toBe('1 of 2');
    expect(await left('/address', 'key-three', '192.0.2.1')).toBe('0 of 2');
    expect((await ask('/address', 'key-one', 'forged, 192.0.2.1')).status).toBe(429);
    expect(await left('/address', 'key-one', '192.0.2.9')).toBe('4 of 5');
    expect(await left('/address', 'key-one', '2001:db8::1')).toBe('1 of 2');
    expect(await left('/address', 'key-one', '2001:db8:0:ff::1')).toBe('0 of 2');
  });

  it('nothing: the route is not limited', async () => {
    expect(ratesOf(await ask('/none', 'key-one')).limit).toBeUndefined();
  });

  it('a name of the request, which can name no key, application or address', async () => {
    for (const id of ['key:one', 'application:app_1', 'address:192.0.2.1']) {
      const reply = await ask('/named', 'key-one', undefined, { 'x-account': id });
      expect([reply.status, reply.text]).toEqual([404, expect.stringContaining('invalid_resource_identifier')]);
    }
  });
});

it('a retry from another address, or with another key of the application, is the same request', async () => {
  const retry = { 'idempotency-key': 'mail-1' };
  const first = await ask('/mail', 'key-one', '192.0.2.20', retry);
  const second = await ask('/mail', 'key-two', '192.0.2.21', retry);
  expect([first.status, second.status, second.headers['idempotency-replayed']]).toEqual([200, 200, 'true']);
});

describe('operators', () => {
  it('find the accounts of keys and applications', async () => {
    const { value } = await admin('/v1/accounts');
    expect(value.accounts.map(({ id, plan }: Record<string, unknown>) => [id, plan])).toEqual([
      ['acc_1', null],
      ['application:app_1', 'pro'],
      ['application:app_2', null],
      ['key:one', 'pro'],
      ['key:three', null],
      ['key:two', 'pro'],
    ]);
  });

  it('see the windows of an account, on the routes that count by it', async () => {
    const routesOf = async (account: string) => {
      const { value } = await admin(`/v1/windows?account=${encodeURIComponent(account)}`);
      return value.routes.map(({ route }: Record<string, unknown>) => route);
    };
    expect(await routesOf('key:one')).toEqual(['GET /key']);
    expect(await routesOf('application:app_1')).toEqual(['GET /application']);
    expect(await routesOf('address:192.0.2.1')).toEqual(['GET /address', 'POST /mail']);
    expect(await routesOf('acc_1')).toEqual(['GET /named']);
  });

  it('find an address in any form', async () => {
    const { value } = await admin('/v1/windows?account=address:2001:db8::77&route=GET%20/address');
    expect(value).toMatchObject({ account: 'address:2001:db8::/56', routes: [{ windows: [{ remaining: 0 }] }] });
  });

  it.each([
    ['/v1/windows?account=key:four', 404],
    ['/v1/windows?account=address:nowhere', 404],
    ['/v1/effective?account=key:one&route=GET%20/named', 404],
    ['/v1/effective?account=key:one&route=GET%20/key', 200],
  ])('%s: %i', async (path, status) => {
    expect((await admin(path)).status).toBe(status);
  });

  it('change the limits of a key, and block an address', async () => {
    const put = (path: string, json: unknown) => gateway.admin('PUT', path, { json });
    expect((await put('/v1/limit?account=key:two', { windows: ['9/1m'], reason: 'more' })).status).toBe(200);
    expect(await left('/key', 'key-two')).toBe('7 of 9');
    const other = await put('/v1/limit?account=address:2001:db8::1', { windows: ['9/1m'], reason: 'more' });
    expect([other.status, other.text]).toEqual([422, expect.stringContaining('no such account')]);
    expect((await put('/v1/block?account=address:192.0.2.9', { forMs: 60_000, reason: 'abuse' })).status).toBe(200);
    expect((await ask('/address', 'key-one', '192.0.2.9')).status).toBe(429);
    expect((await ask('/address', 'key-one', '192.0.2.8')).status).toBe(200);
  });

  it.each(['route=GET%20/none', 'route=GET%20/named&account=key:one'])(
    'cannot set a limit that would never apply: %s',
    async (target) => {
      const reply = await gateway.admin('PUT', `/v1/limit?${target}`, { json: { windows: ['9/1m'], reason: 'r' } });
      expect([reply.status, reply.text]).toEqual([422, expect.stringContaining('would never apply')]);
    },
  );

  it('reset the counts of an address, or of a route of every account', async () => {
    const reset = (json: unknown) => gateway.admin('POST', '/v1/windows/reset', { json });
    expect((await reset({ account: 'address:2001:db8::5', reason: 'r' })).status).toBe(200);
    expect(await left('/address', 'key-one', '2001:db8::1')).toBe('1 of 2');
    expect((await reset({ route: 'GET /address', reason: 'r' })).status).toBe(200);
    expect(await left('/address', 'key-one', '192.0.2.1')).toBe('1 of 2');
  });

  it('read the account in the log, if it names accounts', () => {
    const accounts = new Set(gateway.lines().map(({ account }) => account));
    expect([...accounts]).toEqual(expect.arrayContaining(['key:one', 'application:app_1', 'address:192.0.2.1']));
  });
});
