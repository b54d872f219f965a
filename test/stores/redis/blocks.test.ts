/** What only a block in Redis can show: several processes, one round trip, expiry, outages, and a slot that moves. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { accountOn, idOf, type RedisCluster, startCluster, tell } from 'headgate-testbed/redis-cluster';
import { startRedis } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { BlockedDecision } from '../../../src/core/blocked-decision.ts';
import type { Decision } from '../../../src/core/decision.ts';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet, type WindowSet } from '../../../src/core/window-set.ts';
import { rateLimitFields } from '../../../src/http/rate-limit-fields.ts';
import { createRedisStore, type RedisStore, type RedisStoreOptions } from '../../../src/stores/redis/limits.ts';
import type { OnStoreFailure } from '../../../src/stores/shared/failover.ts';
import { redisForFile } from '../../support/ioredis-for-file.ts';
import { CLUSTER_CLIENTS } from '../../support/redis-clients.ts';

const { port } = inject('redis');
const client = redisForFile();

let prefixes = 0;
const newPrefix = (): string => `blocks-${process.pid}-${prefixes++}`;
const newStore = (prefix = newPrefix(), options: RedisStoreOptions = {}): RedisStore =>
  createRedisStore(client, { prefix, deadlineMs: 10_000, ...options });
const windowSet = createWindowSet([], parseLimit(['100/1h']));
const consume = async (store: RedisStore, account = 'acc', route = 'r', of: WindowSet = windowSet): Promise<Decision> =>
  store.consume(account, route, of, 1);
const accepted = async (store: RedisStore, account?: string, route?: string): Promise<boolean> =>
  (await consume(store, account, route)).accepted;

describe('a block in Redis', () => {
  it('S21: holds at once in every process, and in one that starts later', async () => {
    const prefix = newPrefix();
    const [one, other] = [newStore(prefix), newStore(prefix)];
    expect([await accepted(one), await accepted(other)]).toEqual([true, true]);
    await one.block({ account: 'acc' }, { forMs: 60_000, reason: 'Schluß, "jetzt" \u0000 ☕ \ud800' });
    for (const store of [one, other, newStore(prefix)]) {
      const { blocked } = await consume(store);
      expect(blocked?.reason).toBe('Schluß, "jetzt" \u0000 ☕ \ud800');
      expect(blocked?.forMs).toBeGreaterThan(50_000);
      expect(blocked?.forMs).toBeLessThanOrEqual(60_000);
      expect((await store.blocked({ account: 'acc', route: 'r' }))?.reason).toBe(blocked?.reason);
      expect(await accepted(store, 'acc', 'a route without a record')).toBe(false);
      expect(await accepted(store, 'another')).toBe(true);
    }
  });

  it('S20, S21: a decision is one call, and while a block is known, none', async () => {
    const server = await startRedis();
    const own = new Redis({ port: server.port, host: '127.0.0.1' });
    onTestFinished(async () => {
      own.disconnect();
      await server.stop();
    });
    await once(own, 'ready');
    const store = createRedisStore(own, { deadlineMs: 10_000, denyCacheMaxMs: 60_000 });
    for (let i = 0; i < 10; i++) expect(await accepted(store)).toBe(true);
    expect(store.stats().calls).toBe(10);
    await store.block({ account: 'acc' }, { forMs: 3_600_000 });
    // Replies to checks that were sent in the same millisecond are not cached.
    await sleep(5);
    const [first] = [await consume(store), await consume(store)];
    for (let i = 0; i < 100; i++) expect(store.consume('acc', 'r', windowSet, 1)).toBeInstanceOf(BlockedDecision);
    expect(store.stats()).toMatchObject({ calls: 11, localRejections: 101 });
    await sleep(30);
    const later = await consume(store);
    expect(later.blocked?.forMs).toBeLessThan(first?.blocked?.forMs as number);
    await store.unblock({ account: 'acc' });
    expect(await accepted(store)).toBe(true);
    expect(await own.dbsize()).toBe(1);
  });

  it('S20, S21: another process notices that a block was lifted after at most denyCacheMaxMs', async () => {
    const prefix = newPrefix();
    const [one, other] = [newStore(prefix), newStore(prefix, { denyCacheMaxMs: 150 })];
    await one.block({ account: 'acc' }, { forMs: 60_000 });
    expect(await accepted(other)).toBe(false);
    await one.unblock({ account: 'acc' });
    await sleep(160);
    expect(await accepted(other)).toBe(true);
  });

  it('S21: of many checks in one turn rejects exactly those of the account or the route', async () => {
    const store = newStore();
    for (const scope of ['route', 'account'] as const) {
      const shared = createWindowSet(parseLimit(['50/1m']), parseLimit(['100/1h']), scope);
      await store.block({ account: 'blocked' }, { forMs: 60_000, reason: 'account' });
      await store.block({ account: 'partly', route: 'r3' }, { forMs: 60_000 });
      for (let round = 0; round < 2; round++) {
        const decisions = await Promise.all(
          ['free', 'blocked', 'partly'].flatMap((account) =>
            Array.from({ length: 20 }, (_, i) => consume(store, account, `r${i % 10}`, shared)),
          ),
        );
        const rejected = decisions.filter((decision) => !decision.accepted);
        expect(new Set(rejected.map(({ account, route }) => (account === 'partly' ? route : account)))).toEqual(
          new Set(['blocked', 'r3']),
        );
        expect(rejected).toHaveLength(22);
        expect(new Set(rejected.map(({ blocked }) => blocked?.reason))).toEqual(new Set(['account', undefined]));
      }
    }
    expect((await store.peek('blocked', 'r1', windowSet))[0]?.remaining).toBe(100);
  });

  it('S21: once block() has resolved, no process accepts a request, whatever was on its way', async () => {
    const prefix = newPrefix();
    const second = new Redis({ port, host: '127.0.0.1' });
    onTestFinished(() => second.disconnect());
    await once(second, 'ready');
    const one = newStore(prefix);
    const other = createRedisStore(second, { prefix, deadlineMs: 10_000 });
    const before = Array.from({ length: 50 }, (_, i) => consume(other, 'acc', `r${i}`));
    await one.block({ account: 'acc' }, { forMs: 60_000 });
    const after = Array.from({ length: 50 }, (_, i) => consume(other, 'acc', `r${i}`));
    expect((await Promise.all(after)).filter((decision) => decision.accepted)).toEqual([]);
    await Promise.all(before);
  });

  it('S21: its key expires with it, is not removed by a reset, and is removed when the last block is lifted', async () => {
    const prefix = newPrefix();
    const store = newStore(prefix);
    const key = `${prefix}:{acc}:`;
    await store.block({ account: 'acc' }, { forMs: 5_000 });
    await store.block({ account: 'acc', route: 'r' }, { forMs: 60_000 });
    expect(await client.pttl(key)).toBeGreaterThan(50_000);
    for (const target of [{}, { account: 'acc' }, { route: 'r' }, { account: 'acc', route: 'r' }])
      await store.reset(target);
    expect(await accepted(store)).toBe(false);
    await store.unblock({ account: 'acc', route: 'r' });
    const left = await client.pttl(key);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(5_000);
    await store.unblock({ account: 'acc' });
    expect(await client.exists(key)).toBe(0);
    await store.block({ account: 'acc' }, { forMs: 50 });
    await sleep(60);
    expect(await client.exists(key)).toBe(0);
    expect(await accepted(store)).toBe(true);
  });

  it('S21: of an account at most 100 routes are blocked one by one; the error says what to do', async () => {
    const store = newStore();
    for (let i = 0; i < 100; i++) await store.block({ account: 'acc', route: `r${i}` }, { forMs: 60_000 });
    await expect(store.block({ account: 'acc', route: 'r100' }, { forMs: 60_000 })).rejects.toThrow(
      /^target.route: cannot be blocked, because 100 routes of the account are: block the account, got "r100"/,
    );
    await store.block({ account: 'acc', route: 'r5' }, { forMs: 1_000 });
    expect([await accepted(store, 'acc', 'r99'), await accepted(store, 'acc', 'r100')]).toEqual([false, true]);
    await store.block({ account: 'acc' }, { forMs: 60_000 });
    await store.block({ account: 'acc', route: 'r6' }, { forMs: 60_000 });
    expect(await accepted(store, 'acc', 'r100')).toBe(false);
  });

  it('S21: with a keyPrefix that has braces, accounts do not share blocks', async () => {
    const prefixed = new Redis({ port, host: '127.0.0.1', keyPrefix: 'app{x}:' });
    onTestFinished(() => prefixed.disconnect());
    await once(prefixed, 'ready');
    const store = createRedisStore(prefixed, { prefix: newPrefix(), deadlineMs: 10_000 });
    await store.block({ account: 'a}:b' }, { forMs: 60_000 });
    await store.block({ account: 'acc', route: 'r}:x' }, { forMs: 60_000 });
    expect([await accepted(store, 'a}:b'), await accepted(store, 'a'), await accepted(store, 'b')]).toEqual([
      false,
      true,
      true,
    ]);
    expect([await accepted(store, 'acc', 'r}:x'), await accepted(store, 'acc', 'r')]).toEqual([false, true]);
  });

  it.each(['garbage', '[]x', '{"a":5}', '{"a":["x",""]}'])(
    'if headgate did not write the blocks of an account, only calls of that account fail: %s',
    async (value) => {
      const prefix = newPrefix();
      const errors: unknown[] = [];
      const store = newStore(prefix, { onError: (error) => errors.push(error) });
      await client.set(`${prefix}:{acc}:`, value, 'PX', 60_000);
      const decisions = await Promise.all([consume(store), consume(store, 'other')]);
      expect(decisions.map(({ degraded }) => degraded)).toEqual([true, false]);
      expect((await consume(store)).degraded).toBe(true);
      expect(errors.map(String)).toEqual(
        Array(2).fill(`Error: the record ${prefix}:{acc}: was not written by headgate`),
      );
      const message = `the record ${prefix}:{acc}: was not written by headgate`;
      await expect(store.block({ account: 'acc' }, { forMs: 5 })).rejects.toThrow(message);
      await expect(store.blocked({ account: 'acc' })).rejects.toThrow(message);
      expect(store.stats().breaker).toBe('closed');
    },
  );
});

describe('while Redis is down', () => {
  /** Stores on a server of their own, which is then killed. */
  async function stopped(policies: readonly OnStoreFailure[], before: (stores: RedisStore[]) => Promise<void>) {
    const server = await startRedis();
    const own = new Redis({
      port: server.port,
      host: '127.0.0.1',
      enableOfflineQueue: false,
      retryStrategy: () => null,
    });
    own.on('error', () => {});
    onTestFinished(async () => {
      own.disconnect();
      await server.stop();
    });
    await once(own, 'ready');
    const stores = policies.map((onStoreFailure) => createRedisStore(own, { onStoreFailure, denyCacheMaxMs: 0 }));
    await before(stores);
    const closed = once(own, 'end');
    await server.kill();
    await closed;
    return stores;
  }

  it('S17, S21: a block that this process has set or was told of holds, with every policy, without any field', async () => {
    const stores = await stopped(['local', 'admit', 'refuse'], async ([setter, ...others]) => {
      await setter?.block({ account: 'acc' }, { forMs: 60_000, reason: 'why' });
      await setter?.block({ account: 'partly', route: 'r' }, { forMs: 60_000 });
      for (const store of others) {
        expect(await accepted(store, 'acc', 'some route')).toBe(false);
        expect(await accepted(store, 'partly')).toBe(false);
      }
    });
    for (const store of stores) {
      const decision = await consume(store, 'acc', 'another route');
      expect(decision).toMatchObject({ accepted: false, degraded: true, blocked: { reason: 'why' } });
      expect(rateLimitFields(decision)).toEqual({});
      expect((await consume(store, 'partly')).blocked).toBeDefined();
    }
    expect((await consume(stores[0] as RedisStore, 'partly', 'free')).accepted).toBe(true);
    await expect(stores[0]?.block({ account: 'new' }, { forMs: 5 })).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  });

  it('S21: a block that was lifted does not come back, whoever lifted it', async () => {
    const [one, other] = await stopped(['local', 'local'], async ([setter, noticing]) => {
      await setter?.block({ account: 'acc' }, { forMs: 60_000 });
      expect(await accepted(noticing as RedisStore)).toBe(false);
      await setter?.unblock({ account: 'acc' });
      expect(await accepted(noticing as RedisStore, 'acc', 'another route')).toBe(true);
    });
    for (const store of [one, other])
      expect(await consume(store as RedisStore)).toMatchObject({ accepted: true, degraded: true });
  });
});

describe('in a cluster that moves the slot', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster.stop());

  it.each(Object.entries(CLUSTER_CLIENTS))(
    'S21: accounts without a block are decided, and a block holds after it: %s',
    async (_name, connect) => {
      const { client: own, disconnect } = await connect(cluster.ports);
      onTestFinished(disconnect);
      const [from, to] = cluster.ports as [number, number];
      const { account, slot } = await accountOn(cluster, from);
      const store = createRedisStore(own, { prefix: newPrefix(), deadlineMs: 10_000, denyCacheMaxMs: 0 });
      const expectDecided = async (): Promise<void> => {
        for (const route of ['known', 'known', 'new'])
          expect(await consume(store, account, route)).toMatchObject({ accepted: true, degraded: false });
      };
      await store.consume(account, 'known', windowSet, 1);
      await tell(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from));
      await tell(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to));
      await expectDecided();
      await store.block({ account }, { forMs: 600_000 });
      const keys = (await tell(from, 'CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
      if (keys.length > 0) await tell(from, 'MIGRATE', '127.0.0.1', to, '', 0, 5_000, 'KEYS', ...keys);
      for (const each of [to, from, ...cluster.ports])
        await tell(each, 'CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to));
      expect(await consume(store, account, 'known')).toMatchObject({ accepted: false, degraded: false });
      await store.unblock({ account });
      await expectDecided();
    },
  );
});
