/** S32, S17: leases, and what is given back, while the server is frozen, killed, read-only, or its reply is lost. */
import { NIGHTLY } from 'headgate-testbed/nightly';
import { tell } from 'headgate-testbed/redis-cluster';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { startTcpProxy } from 'headgate-testbed/tcp-proxy';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { LeaseGrant } from '../../../src/core/ports.ts';
import { createRedisStore, type RedisStore } from '../../../src/stores/redis/limits.ts';
import { furtherOf } from '../../../src/testing/history-run.ts';
import { CLIENTS } from '../../support/redis-clients.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const MAX = 100;
const windowSet = windowSetFrom([], [`${MAX}/1h`]);
const CLIENT_NAMES = ['ioredis that fails fast', ...(NIGHTLY ? ['node-redis that fails fast'] : [])];

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterEach(() => server.thaw());
afterAll(() => server.stop());

let prefixes = 0;
async function connect(name: string, port = server.port): Promise<RedisStore> {
  const { client, disconnect } = await (CLIENTS[name] as (typeof CLIENTS)[string])(port);
  onTestFinished(disconnect);
  const prefix = `lease-fault-${prefixes++}`;
  return createRedisStore(client, { prefix, deadlineMs: 300, denyCacheMaxMs: 0, logger: false });
}

const lease = async (store: RedisStore, requests = 10, account = 'a') =>
  store.lease(account, 'r', windowSet, 1, requests);
const used = async (store: RedisStore) => MAX - ((await store.peek('a', 'r', windowSet))[0]?.remaining as number);
const recovered = (store: RedisStore) =>
  until(async () => !(await lease(store, 1, 'recovered')).decision.degraded, 'decides again');
const isOneDegraded = ({ decision, granted }: LeaseGrant): void =>
  expect([decision.degraded, decision.accepted, granted]).toEqual([true, true, 1]);
const receipt = (number: number): string => String(number).padStart(22, 'r');

describe.each(CLIENT_NAMES)('%s', (name) => {
  it('a frozen server: one request is granted at the deadline; what the server charges later was granted to nobody', async () => {
    const store = await connect(name);
    const before = await lease(store);
    server.freeze();
    const lost = store.settleOnce(furtherOf(before), 0, receipt(1)).catch((error) => error.code);
    isOneDegraded(await lease(store));
    expect(await lost).toBe('store_timeout');
    server.thaw();
    await recovered(store);
    // Both lost calls were executed, once. The receipt makes it harmless to ask again.
    expect(await used(store)).toBe(11);
    expect(await store.settleOnce(furtherOf(before), 0, receipt(1))).toBe(false);
    expect(await used(store)).toBe(11);
  });

  it('a reply that is cut off: the units are charged once, and never granted', async () => {
    const proxy = await startTcpProxy(server.port);
    onTestFinished(() => proxy.close());
    const store = await connect(name, proxy.port);
    await lease(store);
    proxy.cutAfterBytes = 6;
    isOneDegraded(await lease(store));
    await recovered(store);
    expect(await used(store)).toBe(20);
    // A lost reply to a settlement: with the same receipt it changes nothing more.
    const grant = await lease(store);
    proxy.cutAfterBytes = 2;
    await expect(store.settleOnce(furtherOf(grant), 0, receipt(2))).rejects.toMatchObject({ sent: true });
    await recovered(store);
    expect([await store.settleOnce(furtherOf(grant), 0, receipt(2)), await used(store)]).toEqual([false, 21]);
  });
});

it('a killed server: one request is granted each time, and the new server knows no old lease', async () => {
  const store = await connect('ioredis that fails fast');
  const before = await lease(store);
  await server.kill();
  for (let i = 0; i < 6; i++) isOneDegraded(await lease(store));
  expect(store.stats().breaker).toBe('open');
  const further = furtherOf(before);
  await expect(store.settleOnce(further, 0, receipt(3))).rejects.toMatchObject({ sent: false });
  await server.restart();
  await recovered(store);
  expect(await lease(store)).toMatchObject({ decision: { degraded: false }, granted: 10 });
  // It belongs to an instance that is gone.
  expect([await store.settleOnce(further, 0, receipt(3)), await used(store)]).toEqual([false, 10]);
});

it('a read-only server: one request is granted each time, and nothing is given back', async () => {
  const store = await connect('ioredis that fails fast');
  const before = await lease(store);
  await tell(server.port, 'REPLICAOF', '127.0.0.1', '1');
  isOneDegraded(await lease(store));
  await expect(store.settleOnce(furtherOf(before), 0, receipt(4))).rejects.toMatchObject({ code: 'store_unavailable' });
  await tell(server.port, 'REPLICAOF', 'NO', 'ONE');
  await recovered(store);
  expect([await store.settleOnce(furtherOf(before), 0, receipt(4)), await used(store)]).toEqual([true, 1]);
});
