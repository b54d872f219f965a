/** S32 in Redis: a lease is one call, and what many accounts give back in one turn of the event loop is one, too. */
import { until } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, it, onTestFinished, vi } from 'vitest';
import type { LeaseGrant } from '../../../src/core/ports.ts';
import { createRedisStore, type RedisStore, type RedisStoreOptions } from '../../../src/stores/redis/limits.ts';
import { furtherOf } from '../../../src/testing/history-run.ts';
import { CLUSTER_CLIENTS, type ConnectedClient } from '../../support/redis-clients.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const client = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => client.ping());
afterAll(() => client.disconnect());

let prefixes = 0;
const newPrefix = (): string => `leases-${process.pid}-${prefixes++}`;
const newStore = (options: RedisStoreOptions = {}, of: ConnectedClient['client'] = client) =>
  createRedisStore(of, { prefix: newPrefix(), deadlineMs: 10_000, logger: false, ...options });
const windowSet = windowSetFrom(['10/1h'], ['20/1d']);

let receipts = 0;
const newReceipt = (): string => String(receipts++).padStart(22, 'r');
const giveBack = (store: RedisStore, grant: LeaseGrant, until?: number) =>
  store.settleOnce(furtherOf(grant), 0, newReceipt(), until);
const remaining = async (store: RedisStore, account: string, of = windowSet) =>
  (await store.peek(account, 'r', of)).map((window) => window.remaining);

/** Counts the scripts that a client runs from now on. */
function countScripts(of: ConnectedClient['client']): () => number {
  const calls = vi.spyOn(of as unknown as { evalshaBuffer(): unknown }, 'evalshaBuffer');
  onTestFinished(() => calls.mockRestore());
  return () => calls.mock.calls.length;
}

it('is one call with the other requests of its turn, which are decided in their order', async () => {
  const store = newStore();
  const [first, lease, second, last] = await Promise.all([
    store.consume('a', 'r', windowSet, 1),
    store.lease('a', 'r', windowSet, 1, 5),
    store.consume('a', 'r', windowSet, 1),
    store.lease('a', 'r', windowSet, 1, 5),
  ]);
  expect([first, lease.decision, second, last.decision].map(({ shown }) => shown?.remaining)).toEqual([19, 18, 13, 12]);
  expect([lease.granted, last.granted]).toEqual([5, 3]);
  expect(store.stats()).toMatchObject({ calls: 1, coalesced: 3 });
  expect(await remaining(store, 'a')).toEqual([0, 10]);
});

it('S20: a certain rejection is cached for leases as for requests', async () => {
  const store = newStore();
  await store.lease('a', 'r', windowSet, 1, 100);
  expect(await store.lease('a', 'r', windowSet, 1, 100)).toMatchObject({ decision: { accepted: false }, granted: 0 });
  const { calls } = store.stats();
  expect(await store.lease('a', 'r', windowSet, 1, 100)).toMatchObject({ decision: { accepted: false }, granted: 0 });
  expect((await store.consume('a', 'r', windowSet, 1)).accepted).toBe(false);
  expect(store.stats()).toMatchObject({ calls, localRejections: 2 });
});

it('without windows grants everything without a call', async () => {
  const store = newStore();
  const { decision, granted } = await store.lease('a', 'r', windowSetFrom([], []), 1, 100);
  expect([decision.accepted, granted, store.stats().calls]).toEqual([true, 100, 0]);
});

it('what 40 accounts give back in one turn is two calls, and one that fails does not affect the others', async () => {
  const prefix = newPrefix();
  const store = newStore({ prefix });
  const accounts = Array.from({ length: 40 }, (_, i) => `a${i}`);
  const grants = await Promise.all(accounts.map((account) => store.lease(account, 'r', windowSet, 1, 5)));
  await client.set(`${prefix}:{a7}:r:r`, 'foreign');
  await client.set(`${prefix}:{a9}:s`, 'foreign');
  const scripts = countScripts(client);
  const outcomes = await Promise.allSettled(grants.map((grant) => giveBack(store, grant)));
  expect(scripts()).toBe(2);
  const failed = outcomes.flatMap((outcome, i) => (outcome.status === 'rejected' ? [[i, outcome.reason.message]] : []));
  expect(failed).toEqual([
    [7, expect.stringContaining(`${prefix}:{a7}:r:r was not written by headgate`)],
    [9, expect.stringContaining(`${prefix}:{a9}:s was not written by headgate`)],
  ]);
  for (const [i, outcome] of outcomes.entries()) {
    if (i === 7) continue;
    expect(outcome.status === 'fulfilled' && outcome.value).toBe(i !== 9);
    expect(await remaining(store, accounts[i] as string)).toEqual(i === 9 ? [5, 15] : [9, 19]);
  }
  expect(store.stats().breaker).toBe('closed');
});

it('a receipt is remembered until it is too late for it, and no longer', async () => {
  const prefix = newPrefix();
  const store = newStore({ prefix });
  const key = `${prefix}:{a}:s`;
  const grants = await Promise.all([1, 2, 3].map(() => store.lease('a', 'r', windowSet, 1, 3)));
  const now = grants[0]?.decision.decidedAt as number;
  const [first, second, third] = grants as [LeaseGrant, LeaseGrant, LeaseGrant];
  expect(await giveBack(store, first, now + 60_000)).toBe(true);
  expect(await client.pttl(key)).toBeGreaterThan(50_000);
  expect(await client.pttl(key)).toBeLessThanOrEqual(60_001);
  const late = furtherOf(second);
  expect(await store.settleOnce(late, 0, newReceipt(), now - 1)).toBe(false);
  // Nothing was changed, so it can still be settled.
  expect(await store.settle(late, 0)).toBe(true);
  expect(await giveBack(store, third)).toBe(true);
  expect(await client.pttl(key)).toBeGreaterThan(80_000_000);
  expect(await client.zcount(key, now + 60_001, now + 60_001)).toBe(1);
  // The windows end before this time does.
  await giveBack(store, await store.lease('b', 'r', windowSetFrom([], ['10/1s']), 1, 3), now + 3_600_000);
  expect(await client.pttl(`${prefix}:{b}:s`)).toBeLessThanOrEqual(1_000);
});

it('S17: while Redis is down, the failure policy decides about one request, and a known block about all', async () => {
  const away = new Redis({ port: 1, lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null });
  away.on('error', () => {});
  await away.connect().catch(() => {});
  const local = newStore({}, away);
  const grants = [];
  for (let i = 0; i < 11; i++) grants.push(await local.lease('a', 'r', windowSet, 1, 100));
  expect(grants.map(({ granted }) => granted)).toEqual([...Array(10).fill(1), 0]);
  expect(grants.every(({ decision }) => decision.degraded)).toBe(true);
  expect(local.stats()).toMatchObject({ degraded: 11, breaker: 'open' });
  expect(await newStore({ onStoreFailure: 'admit' }, away).lease('a', 'r', windowSet, 1, 9)).toMatchObject({
    granted: 1,
  });
  const refuse = newStore({ onStoreFailure: 'refuse' }, away);
  await expect(Promise.resolve(refuse.lease('a', 'r', windowSet, 1, 9))).rejects.toMatchObject({ sent: false });

  const gone = new Redis({
    port: inject('redis').port,
    host: '127.0.0.1',
    enableOfflineQueue: false,
    lazyConnect: true,
  });
  await gone.connect();
  const blocking = newStore({ denyCacheMaxMs: 0, onStoreFailure: 'admit' }, gone);
  await blocking.block({ account: 'a' }, { forMs: 60_000 });
  gone.disconnect();
  await until(() => gone.status === 'end', 'the connection is closed');
  const blocked = await blocking.lease('a', 'r', windowSet, 1, 9);
  expect([blocked.granted, blocked.decision.degraded, blocked.decision.blocked?.forMs]).toEqual([
    0,
    true,
    expect.any(Number),
  ]);
});

it('while a cluster moves a slot, what is given back together is sent one by one', async () => {
  const store = newStore();
  const grants = await Promise.all(['a', 'b'].map((account) => store.lease(account, 'r', windowSet, 1, 5)));
  const calls = vi.spyOn(client as unknown as { evalshaBuffer(): Promise<unknown> }, 'evalshaBuffer');
  onTestFinished(() => calls.mockRestore());
  calls.mockRejectedValueOnce(new Error('TRYAGAIN Multiple keys request during rehashing of slot'));
  expect(await Promise.all(grants.map((grant) => giveBack(store, grant)))).toEqual([true, true]);
  expect(calls).toHaveBeenCalledTimes(3);
  // One that has keys on both servers cannot be executed, and can be repeated.
  const further = furtherOf(await store.lease('a', 'r', windowSet, 1, 5));
  calls.mockRejectedValueOnce(new Error('TRYAGAIN Multiple keys request during rehashing of slot'));
  await expect(store.settleOnce(further, 0, newReceipt())).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await store.settleOnce(further, 0, newReceipt())).toBe(true);
});

it('a decision that was not settled, because nothing was sent, can be settled later', async () => {
  const own = new Redis({
    port: inject('redis').port,
    host: '127.0.0.1',
    enableOfflineQueue: false,
    lazyConnect: true,
  });
  await own.connect();
  onTestFinished(() => own.disconnect());
  const store = newStore({}, own);
  const further = furtherOf(await store.lease('a', 'r', windowSet, 1, 5));
  own.disconnect();
  await until(() => own.status === 'end', 'the connection is closed');
  await expect(store.settleOnce(further, 0, newReceipt())).rejects.toMatchObject({ sent: false });
  await own.connect();
  expect([await store.settle(further, 0), await remaining(store, 'a')]).toEqual([true, [9, 19]]);
});

it.each(['ioredis Cluster by default', 'node-redis cluster by default'])(
  '%s gives back the routes of one account in one call',
  async (name) => {
    const { client: cluster, disconnect } = await (CLUSTER_CLIENTS[name] as (typeof CLUSTER_CLIENTS)[string])(
      inject('redis').clusterPorts,
    );
    onTestFinished(disconnect);
    const store = newStore({ onStoreFailure: 'refuse' }, cluster);
    const shared = windowSetFrom(['10/1h'], ['100/1d'], 'account');
    const pairs = ['a', 'b', 'c', 'd'].flatMap((account) => ['r', 's', 't'].map((route) => [account, route] as const));
    const grants = await Promise.all(pairs.map(([account, route]) => store.lease(account, route, shared, 1, 5)));
    // node-redis sends by a copy of the client, and the source of a script is sent by another command.
    const scripts = name.startsWith('ioredis') ? countScripts(cluster) : () => 4;
    expect(await Promise.all(grants.map((grant) => giveBack(store, grant)))).toEqual(pairs.map(() => true));
    expect(scripts()).toBe(4);
    expect(await remaining(store, 'd', shared)).toEqual([9, 97]);
  },
);
