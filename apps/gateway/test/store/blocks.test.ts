/** What an operator blocks at one gateway holds at all of them. */
import { NIGHTLY } from 'headgate-testbed/nightly';
import { eventually } from 'headgate-testbed/raw-http';
import { startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, inject, it } from 'vitest';
import { type AdminGateway, startAdminGateway } from '../support/admin.ts';
import { expectProblem } from '../support/gateway.ts';
import { isRedis, storeServerForFile } from '../support/store-server.ts';

const server = await storeServerForFile();
const upstream = await startUpstream();
const CHATS = 'GET /api/v1/chats';
// The cluster is shared with other test files: accounts that none of them uses.
const accounts = ['blocked_1', 'blocked_2', 'blocked_3'].map((id) => ({
  id,
  application: 'app_1',
  provider: 'mock',
}));

/** Long deadlines, because a busy machine must not cause a degraded decision. */
const start = (store: unknown, rest: Record<string, unknown> = {}): Promise<AdminGateway> =>
  startAdminGateway(upstream.url, {
    store,
    storeDeadlineMs: 10_000,
    accounts,
    limits: { default: { allMethods: ['1000/1m'] } },
    ...rest,
  });
const statusAt = async (gateway: AdminGateway, account: string) =>
  (await gateway.ask('GET', `/api/v1/chats?account_id=${account}`)).status;

describe.each(isRedis ? ['one server', 'a cluster'] : ['one server'])('S21: two gateways, %s', (kind) => {
  const url =
    kind === 'a cluster'
      ? `redis-cluster://${inject('redis')
          .clusterPorts.map((each) => `127.0.0.1:${each}`)
          .join()}`
      : server.store();

  it('a block at one holds at the other from its next decision on, and ends there too', async () => {
    const [one, other] = await Promise.all([start(url), start(url)]);
    // Each round takes a second, so a change waits for one of each direction, and one that blocks an account again.
    for (let round = 0; round < (NIGHTLY ? 5 : 3); round++) {
      const [from, to] = round % 2 === 0 ? [one, other] : [other, one];
      const [account, path] = [`blocked_${1 + (round % 2)}`, `/v1/block?account=blocked_${1 + (round % 2)}`];
      await eventually(async () => (await statusAt(to, account)) === 200, 'no rejection is cached');
      const put = await from.admin('PUT', path, { json: { forMs: 60_000, reason: `round ${round}` } });
      expect(JSON.parse(put.text).blocked).toMatchObject({ scope: 'account', reason: `round ${round}` });
      expect([await statusAt(to, account), await statusAt(from, account)]).toEqual([429, 429]);
      const seen = JSON.parse((await to.admin('GET', path, { as: 'viewer' })).text);
      expect(seen.blocked).toMatchObject({ scope: 'account', reason: `round ${round}` });
      await from.admin('DELETE', path);
      expect(await statusAt(from, account)).toBe(200);
      // The other one may repeat its last rejection for a second.
      await eventually(async () => (await statusAt(to, account)) === 200, 'the end of the block at the other');
    }
    await Promise.all([one.stop(), other.stop()]);
  });

  it('a gateway that starts later obeys, and only for the route that is blocked', async () => {
    const one = await start(url);
    const path = `/v1/block?account=blocked_3&route=${encodeURIComponent(CHATS)}`;
    await one.admin('PUT', path, { json: { forMs: 60_000 } });
    await one.stop();
    const late = await start(url);
    expect(await statusAt(late, 'blocked_3')).toBe(429);
    const { routes } = JSON.parse((await late.admin('GET', '/v1/windows?account=blocked_3')).text);
    expect(routes.filter(({ blocked }: { blocked: unknown }) => blocked !== null)).toMatchObject([
      { route: CHATS, blocked: { scope: 'route' } },
    ]);
    await late.admin('DELETE', path);
    expect(await statusAt(late, 'blocked_3')).toBe(200);
    await late.stop();
  });
});

it('while the store does not answer, a change is 503, and the blocks that the process knows hold', async () => {
  const gateway = await start(server.store(), { storeDeadlineMs: 150 });
  await gateway.admin('PUT', '/v1/block?account=blocked_1', { json: { forMs: 60_000 } });
  server.freeze();
  expectProblem(
    await gateway.admin('PUT', '/v1/block?account=blocked_2', { json: { forMs: 60_000 } }),
    503,
    'errors/service_unavailable',
  );
  expect([await statusAt(gateway, 'blocked_1'), await statusAt(gateway, 'blocked_2')]).toEqual([429, 200]);
  server.thaw();
  await gateway.stop();
});

it.runIf(isRedis)('100 routes of an account at most: the next one is 409, and says what to do', async () => {
  const routes = Array.from({ length: 101 }, (_, i) => `GET /r${i}`);
  const gateway = await start(server.store(), {
    routes: routes.map((route) => ({ route, account: 'query.account_id' })),
  });
  const block = (route: string) =>
    gateway.admin('PUT', `/v1/block?account=blocked_1&route=${encodeURIComponent(route)}`, { json: { forMs: 60_000 } });
  for (const route of routes.slice(0, 100)) expect((await block(route)).status).toBe(200);
  const reply = await block(routes[100] as string);
  expectProblem(reply, 409, 'errors/conflict');
  expect(JSON.parse(reply.text).detail).toMatch(/because 100 routes of the account are: block the account/);
  await gateway.stop();
});
