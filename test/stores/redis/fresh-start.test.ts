/** S36 in Redis: an account's records are several keys, so a mark beside its blocks ends what they count. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest';
import { createRedisStore, type RedisStoreOptions } from '../../../src/stores/redis/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const client = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => client.ping());
afterAll(() => client.disconnect());

let prefixes = 0;
const newPrefix = (): string => `fresh-${process.pid}-${prefixes++}`;
const newStore = (prefix: string, options: RedisStoreOptions = {}) =>
  createRedisStore(client, { prefix, deadlineMs: 10_000, denyCacheMaxMs: 0, ...options });
const HOUR_MS = 3_600_000;
const HOUR = { longestMs: HOUR_MS };
const ROUTES = Array.from({ length: 20 }, (_, i) => `r${i}`);
const windowSet = windowSetFrom(['3/1h'], ['100/1h'], 'account');

it('no observer in another process sees a part of it, however many routes the account has', async () => {
  const prefix = newPrefix();
  const [one, other] = [newStore(prefix), newStore(prefix)];
  const scan = vi.spyOn(client, 'scan');
  const seen = new Set<string>();
  for (let round = 0; round < 5; round++) {
    for (const route of ROUTES) await other.consume('a', route, windowSet, 1);
    const watched = (async () => {
      for (let i = 0; i < 20; i++) {
        const decision = await other.consume('a', `r${i}`, windowSet, 1);
        // One reply has the windows of all routes, so it shows whether some are gone and others are not.
        const counts = (await Promise.all(ROUTES.slice(0, 4).map((route) => other.peek('a', route, windowSet)))).map(
          ([own]) => 3 - (own?.remaining ?? 0),
        );
        const isFresh = counts.every((count) => count === 0);
        seen.add(decision.accepted ? 'accepted' : 'blocked');
        if (!decision.accepted) expect(counts).toEqual([0, 0, 0, 0]);
        else if (!isFresh) expect(Math.min(...counts)).toBeGreaterThan(0);
      }
    })();
    await one.block({ account: 'a' }, { forMs: 60_000 }, HOUR);
    await watched;
    expect((await other.consume('a', 'r0', windowSet, 1)).accepted).toBe(false);
    await one.unblock({ account: 'a' });
    expect((await other.peek('a', 'r0', windowSet)).map(({ remaining }) => remaining)).toEqual([3, 100]);
  }
  expect(seen).toContain('blocked');
  expect(scan).not.toHaveBeenCalled();
});

it('the mark outlives its block for as long as a window may last, and no longer', async () => {
  const prefix = newPrefix();
  const store = newStore(prefix);
  await store.consume('a', 'r', windowSet, 3);
  await store.block({ account: 'a' }, { forMs: 1 }, HOUR);
  const blocks = `${prefix}:{a}:`;
  const ttl = await client.pttl(blocks);
  expect(ttl).toBeGreaterThan(HOUR_MS - 60_000);
  expect(ttl).toBeLessThanOrEqual(HOUR_MS);
  await store.unblock({ account: 'a' });
  expect(await client.exists(blocks)).toBe(1);
  expect(await store.blocked({ account: 'a', route: 'r' })).toBeUndefined();
  // A later block without a fresh start keeps the mark.
  await store.block({ account: 'a' }, { forMs: 60_000 });
  await store.unblock({ account: 'a' });
  // What starts in the millisecond of the mark is over, too.
  await new Promise((resolve) => setTimeout(resolve, 5));
  expect((await store.consume('a', 'r', windowSet, 3)).accepted).toBe(true);
  expect((await store.consume('a', 'r', windowSet, 1)).accepted).toBe(false);
  for (const key of await client.keys(`${prefix}:*`)) expect(await client.pttl(key)).toBeGreaterThan(0);
});

it('S10: the windows of an earlier duration do not come back', async () => {
  const clock = createFakeClock(1_000_000);
  const store = newStore(newPrefix(), { clock });
  const [earlier, later] = [windowSetFrom(['3/1h']), windowSetFrom(['3/1m'])];
  await store.consume('a', 'r', earlier, 3);
  await store.consume('a', 'r', later, 1);
  clock.advance(1);
  await store.block({ account: 'a' }, { forMs: 1 }, HOUR);
  clock.advance(1);
  expect((await store.consume('a', 'r', later, 1)).shown?.remaining).toBe(2);
  expect((await store.peek('a', 'r', earlier)).map(({ remaining }) => remaining)).toEqual([3]);
});

it('S15: if the clock is set back, the mark waits, so that no request goes uncounted', async () => {
  const clock = createFakeClock(1_000_000);
  const store = newStore(newPrefix(), { clock });
  await store.block({ account: 'a' }, { forMs: 1 }, HOUR);
  await store.unblock({ account: 'a' });
  clock.set(900_000);
  const accepted = [];
  for (let i = 0; i < 5; i++) accepted.push((await store.consume('a', 'r', windowSet, 1)).accepted);
  expect(accepted).toEqual([true, true, true, false, false]);
});

it('S36: a route is deleted with its block, and a foreign record is no obstacle', async () => {
  const prefix = newPrefix();
  const store = newStore(prefix);
  await client.set(`${prefix}:{a}:r:r`, 'foreign');
  await store.block({ account: 'a', route: 'r' }, { forMs: 1 }, HOUR);
  expect(await client.exists(`${prefix}:{a}:r:r`)).toBe(0);
  await client.set(`${prefix}:{b}:`, 'foreign');
  await expect(store.block({ account: 'b', route: 'r' }, { forMs: 1 }, HOUR)).rejects.toThrow(/was not written/);
});
