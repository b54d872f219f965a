/** What only Redis can show of a charge: one round trip, cached rejections, blocks, an outage, and records of others. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createRedisStore, type RedisStoreOptions } from '../../../src/stores/redis/limits.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const client = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => client.ping());
afterAll(() => client.disconnect());

let prefixes = 0;
const newPrefix = (): string => `charge-${process.pid}-${prefixes++}`;
const newStore = (options: RedisStoreOptions = {}) =>
  createRedisStore(client, { prefix: newPrefix(), deadlineMs: 10_000, logger: false, ...options });
const windowSet = windowSetFrom(['3/1h'], ['5/1d']);

it('S20, S35: is one call, and cached rejections stay true', async () => {
  const store = newStore();
  expect((await store.charge('a', 'r', windowSet, 3)).map(({ remaining }) => remaining)).toEqual([0, 2]);
  expect(store.stats().calls).toBe(1);
  expect((await store.consume('a', 'r', windowSet, 1)).accepted).toBe(false);
  await store.charge('a', 'r', windowSet, 4);
  expect((await store.consume('a', 'r', windowSet, 1)).accepted).toBe(false);
  expect(store.stats()).toMatchObject({ calls: 3, localRejections: 1 });
  expect((await store.peek('a', 'r', windowSet)).map(({ remaining }) => remaining)).toEqual([0, 0]);
});

it('S21, S35: charges a blocked account, which stays blocked', async () => {
  const store = newStore({ denyCacheMaxMs: 0 });
  await store.block({ account: 'a' }, { forMs: 60_000 });
  expect((await store.charge('a', 'r', windowSet, 1)).map(({ remaining }) => remaining)).toEqual([2, 4]);
  expect((await store.consume('a', 'r', windowSet, 1)).blocked?.forMs).toBeGreaterThan(0);
  await store.unblock({ account: 'a' });
  expect((await store.consume('a', 'r', windowSet, 1)).shown?.remaining).toBe(3);
});

it('S17, S35: an outage charges the counters of the process, or throws with `refuse`', async () => {
  const away = new Redis({ port: 1, lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null });
  away.on('error', () => {});
  await away.connect().catch(() => {});
  const local = createRedisStore(away, { prefix: newPrefix(), logger: false });
  expect((await local.charge('a', 'r', windowSet, 3)).map(({ remaining }) => remaining)).toEqual([0, 2]);
  expect(await local.consume('a', 'r', windowSet, 1)).toMatchObject({ accepted: false, degraded: true });
  expect(local.stats().degraded).toBe(2);
  const refuse = createRedisStore(away, { prefix: newPrefix(), logger: false, onStoreFailure: 'refuse' });
  await expect(refuse.charge('a', 'r', windowSet, 3)).rejects.toMatchObject({ code: 'store_unavailable' });
});

it('S35: a record that headgate did not write is left alone, and the policy decides', async () => {
  const prefix = newPrefix();
  const store = newStore({ prefix, onStoreFailure: 'refuse' });
  await client.set(`${prefix}:{a}:r:r`, 'foreign');
  await expect(store.charge('a', 'r', windowSet, 1)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await client.get(`${prefix}:{a}:r:r`)).toBe('foreign');
});
