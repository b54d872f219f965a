/** An operator blocks an account, or one of its routes, and lifts the block: a store in memory. */
import { eventually, openRaw } from 'headgate-testbed/raw-http';
import { startUpstream } from 'headgate-testbed/upstream';
import { expect, it } from 'vitest';
import { type AdminAsk, startAdminGateway, TOKENS } from '../support/admin.ts';
import { expectProblem } from '../support/gateway.ts';

const CHATS = 'GET /api/v1/chats';
const POST_CHATS = 'POST /api/v1/chats';
const FREE = 'GET /free';
const YEAR_MS = 365 * 86_400_000;

const upstream = await startUpstream((_seen, response) => void response.end('{}'));
const gateway = await startAdminGateway(upstream.url, {
  log: { account: true },
  routes: [
    { route: CHATS, account: 'query.account_id' },
    { route: POST_CHATS, account: 'query.account_id' },
    { route: FREE, account: 'query.account_id' },
    { route: 'GET /open' },
  ],
  limits: { providers: { mock: { routes: { [CHATS]: ['100/1m'], [POST_CHATS]: ['100/1m'] } } } },
});

const pathOf = (account: string, route?: string, more = '') =>
  `/v1/block?account=${account}${route === undefined ? '' : `&route=${encodeURIComponent(route)}`}${more}`;
async function ask(method: string, path: string, more: AdminAsk = {}) {
  const reply = await gateway.admin(method, path, { as: 'operator', ...more });
  return { ...reply, value: JSON.parse(reply.text) };
}
const chats = (account: string, method = 'GET') => gateway.ask(method, `/api/v1/chats?account_id=${account}`);

it('S21: a block rejects the next request with its reason and retry-after, until it is lifted; nothing is charged', async () => {
  const put = await ask('PUT', pathOf('acc_1'), { json: { forMs: 60_000, reason: 'Unpaid.' } });
  expect(put.value).toEqual({
    account: 'acc_1',
    route: null,
    blocked: { scope: 'account', forMs: expect.any(Number), until: expect.any(String), reason: 'Unpaid.' },
    unlimited: [FREE],
  });
  const { forMs, until } = put.value.blocked;
  expect(forMs).toBeGreaterThan(50_000);
  expect(Math.abs(Date.parse(until) - Date.now() - forMs)).toBeLessThan(5_000);
  const rejected = await chats('acc_1');
  expectProblem(rejected, 429, 'api/too_many_requests');
  expect(JSON.parse(rejected.text).detail).toMatch(/blocked for this account; retry in \d+ s\. Reason: Unpaid\.$/);
  expect(Number(rejected.headers['retry-after'])).toBeGreaterThan(50);
  expect((await chats('acc_1', 'POST')).status).toBe(429);
  // Without a limit nothing is checked.
  expect((await gateway.ask('GET', '/free?account_id=acc_1')).status).toBe(200);
  expect((await chats('acc_2')).status).toBe(200);

  const windows = (await ask('GET', '/v1/windows?account=acc_1', { as: 'viewer' })).value;
  expect(windows.blocked).toMatchObject({ scope: 'account', reason: 'Unpaid.' });
  expect(windows.routes).toMatchObject([
    { blocked: { scope: 'account' }, windows: [{ used: 0 }] },
    { blocked: { scope: 'account' } },
    { blocked: null, windows: [] },
  ]);
  const id = rejected.headers['x-request-id'] as string;
  expect((await ask('GET', `/v1/decisions?req_id=${id}`)).value).toMatchObject({
    outcome: 'rejected',
    blocked: { forMs: expect.any(Number), reason: 'Unpaid.' },
    trace: [],
  });
  expect(await gateway.metrics()).toContain(
    `headgate_decisions_total{route="${CHATS}",limit="block",outcome="rejected"} 1`,
  );

  const lifted = await ask('DELETE', pathOf('acc_1', undefined, '&reason=paid'));
  expect(lifted.value).toMatchObject({ account: 'acc_1', blocked: null });
  expect((await chats('acc_1')).status).toBe(200);
  expect((await ask('DELETE', pathOf('acc_1'))).status).toBe(200);
  expect(await gateway.metrics()).toMatch(/headgate_store_seconds_count\{operation="unblock"\} 2/);
});

it('a block of a route leaves the others; of two the one that ends last is shown, and each is lifted alone', async () => {
  const stateOf = async (route?: string) => (await ask('GET', pathOf('acc_2', route), { as: 'viewer' })).value.blocked;
  await ask('PUT', pathOf('acc_2', CHATS), { json: { forMs: 120_000, reason: 'route' } });
  expect([(await chats('acc_2')).status, (await chats('acc_2', 'POST')).status]).toEqual([429, 200]);
  expect([await stateOf(), await stateOf(POST_CHATS)]).toEqual([null, null]);
  expect(await stateOf(CHATS)).toMatchObject({ scope: 'route', reason: 'route' });
  await ask('PUT', pathOf('acc_2'), { json: { forMs: 60_000 } });
  expect(await stateOf()).toMatchObject({ scope: 'account', reason: null });
  expect(await stateOf(CHATS)).toMatchObject({ scope: 'route', reason: 'route' });
  expect(await stateOf(POST_CHATS)).toMatchObject({ scope: 'account', reason: null });
  // The last one wins, although it is shorter.
  await ask('PUT', pathOf('acc_2', CHATS), { json: { forMs: 1_000 } });
  expect(await stateOf(CHATS)).toMatchObject({ scope: 'account' });
  expect((await ask('DELETE', pathOf('acc_2', CHATS))).value.blocked).toMatchObject({ scope: 'account' });
  expect((await chats('acc_2')).status).toBe(429);
  await ask('DELETE', pathOf('acc_2'));
  expect((await chats('acc_2')).status).toBe(200);
});

it('a block ends by itself, also one with a moment', async () => {
  const until = new Date(Date.now() + 300).toISOString();
  const { value } = await ask('PUT', pathOf('acc_3'), { json: { until } });
  expect(value.blocked.forMs).toBeLessThanOrEqual(300);
  await eventually(async () => (await chats('acc_3')).status === 200, 'the end of the block');
  expect((await ask('GET', pathOf('acc_3'))).value.blocked).toBeNull();
});

it.each<[object, RegExp]>([
  [{}, /^forMs: give either this or until: a block has one end$/],
  [{ forMs: 1, until: '2099-01-01T00:00:00Z' }, /^forMs: give either/],
  [{ forMs: 0 }, /^forMs: /],
  [{ forMs: 1.5 }, /^forMs: /],
  [{ forMs: YEAR_MS + 1 }, /^forMs: /],
  [{ until: '2020-01-01T00:00:00Z' }, /^until: must be in the future, and at most a year from now$/],
  [{ until: '2099-01-01T00:00:00Z' }, /^until: must be in the future/],
  [{ until: 'tomorrow' }, /^until: must be a time in ISO 8601 with its offset, got "tomorrow"$/],
  [{ forMs: 1, reason: 'x'.repeat(201) }, /^reason: /],
  [{ forMs: 1, reason: 'a\nb' }, /^reason: must have no control characters, got "a\\nb"$/],
  [{ forMs: 1, why: 'x' }, /^why: /],
])('refuses %j, and blocks nothing', async (json, detail) => {
  const reply = await ask('PUT', pathOf('acc_4'), { json });
  expectProblem(reply, 422, 'errors/unprocessable_entity');
  expect(reply.value.detail).toMatch(detail);
  expect((await ask('GET', pathOf('acc_4'))).value.blocked).toBeNull();
});

it('takes a year and 200 characters', async () => {
  const { value } = await ask('PUT', pathOf('acc_4'), { json: { forMs: YEAR_MS, reason: 'ü'.repeat(200) } });
  expect(value.blocked.reason).toHaveLength(200);
  await ask('DELETE', pathOf('acc_4'));
});

it('refuses an account or a route that the config does not have, and a route without a limit', async () => {
  for (const [method, more] of [['GET'], ['PUT', { json: { forMs: 1 } }], ['DELETE']] as [string, AdminAsk?][]) {
    expectProblem(await ask(method, pathOf('nobody'), more), 404, 'errors/invalid_resource_identifier');
    expectProblem(await ask(method, pathOf('acc_1', 'GET /open'), more), 404, 'errors/resource_not_found');
    expectProblem(await ask(method, '/v1/block', more), 422, 'errors/unprocessable_entity');
  }
  const reply = await ask('PUT', pathOf('acc_1', FREE), { json: { forMs: 60_000 } });
  expectProblem(reply, 409, 'errors/conflict');
  expect(reply.value.detail).toBe(
    'The account has no limit there, so nothing would be rejected: give it a limit first.',
  );
});

it('a viewer may look, and no more; the log and the events say who did what', async () => {
  for (const [method, more] of [['PUT', { json: { forMs: 1 } }], ['DELETE']] as [string, AdminAsk?][])
    expectProblem(
      await ask(method, pathOf('acc_5'), { ...more, as: 'viewer' }),
      403,
      'errors/insufficient_permissions',
    );
  const client = await openRaw(gateway.adminPort);
  client.write(
    `GET /v1/events?types=decision,state HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKENS.viewer}\r\n\r\n`,
  );
  await eventually(() => client.received().includes('events follow'), 'the stream');
  await ask('PUT', pathOf('acc_5', CHATS), { json: { forMs: 60_000, reason: 'Unpaid.' } });
  await chats('acc_5');
  await ask('DELETE', pathOf('acc_5', CHATS, '&reason=paid'));
  await eventually(() => client.received().includes('account_unblocked'), 'the events');
  client.destroy();
  const datas = [...client.received().matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data));
  expect(datas).toMatchObject([
    { state: 'account_blocked', by: 'olaf', account: 'acc_5', route: CHATS },
    { account: 'acc_5', outcome: 'rejected', blocked: { forMs: expect.any(Number), reason: 'Unpaid.' } },
    { state: 'account_unblocked', by: 'olaf', account: 'acc_5', route: CHATS },
  ]);
  await eventually(() => gateway.lines().some(({ msg, reason }) => msg === 'account unblocked' && reason), 'the log');
  const lines = gateway.lines().filter(({ account }) => account === 'acc_5');
  expect(lines).toContainEqual(
    expect.objectContaining({
      ...{ msg: 'account blocked', by: 'olaf', route: CHATS, forMs: 60_000, reason: 'Unpaid.' },
    }),
  );
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'account unblocked', by: 'olaf', reason: 'paid' }));
  expect(lines).toContainEqual(expect.objectContaining({ decision: 'rejected', blocked: true }));
});

it('the other limits that an operator tries change nothing: a shadow runs, and a block holds', async () => {
  await ask('PUT', '/v1/shadow', { json: { limits: { default: { allMethods: ['1/1m'] } }, sample: 1, store: 'same' } });
  await ask('PUT', pathOf('acc_6'), { json: { forMs: 60_000 } });
  expect((await chats('acc_6')).status).toBe(429);
  await ask('DELETE', pathOf('acc_6'));
  expect((await chats('acc_6')).status).toBe(200);
});

it('S36: `reset` deletes the counters in the same step; without it they stay', async () => {
  const used = async () => {
    const { value } = await ask('GET', '/v1/windows?account=acc_2', { as: 'viewer' });
    return value.routes[0].windows[0].used;
  };
  await chats('acc_2');
  const before = await used();
  expect(before).toBeGreaterThan(0);
  await ask('PUT', pathOf('acc_2', CHATS), { json: { forMs: 60_000 } });
  expect(await used()).toBe(before);
  const put = await ask('PUT', pathOf('acc_2', CHATS), { json: { forMs: 60_000, reset: true } });
  expect(put.value.blocked).toMatchObject({ scope: 'route' });
  expect(await used()).toBe(0);
  expectProblem(
    await ask('PUT', pathOf('acc_2'), { json: { forMs: 1, reset: 1 } }),
    422,
    'errors/unprocessable_entity',
  );
  await ask('DELETE', pathOf('acc_2', CHATS));
});
