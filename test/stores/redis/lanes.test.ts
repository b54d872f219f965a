/** S28: lanes on a server. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import type { Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { createLimiter, type LimiterOptions } from '../../../src/index.ts';
import { createRedisStore, type RedisStoreOptions } from '../../../src/stores/redis/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { clusterForFile, redisForFile } from '../../support/ioredis-for-file.ts';
import { expectLanes, laneHistories, limitsOf } from '../../support/lane-histories.ts';

const client = redisForFile();
const cluster = clusterForFile();

const RUNS = NIGHTLY ? 1_000 : 30;
let stores = 0;
const newStore = (options: RedisStoreOptions = {}, on: unknown = client) =>
  createRedisStore(on as Redis, { prefix: `lanes-${process.pid}-${stores++}`, deadlineMs: 10_000, ...options });

it.each([
  ['Redis', () => client],
  ['a cluster', () => cluster],
])('S28: random histories on %s are as the model says', async (_, clientOf) => {
  await fc.assert(
    fc.asyncProperty(laneHistories(true), async (history) => {
      const clock = createFakeClock(1_000_000);
      const limiter = createLimiter({
        store: newStore({ clock }, clientOf()),
        limits: limitsOf(history),
        validate: false,
      });
      await expectLanes(history, { limiter, adjust: limiter.adjust.bind(limiter) }, clock);
    }),
    { numRuns: RUNS },
  );
});

it('S28: also with the cache of rejections, in which each lane has its own', async () => {
  let hits = 0;
  await fc.assert(
    fc.asyncProperty(laneHistories(false), async (history) => {
      const store = newStore({ denyCacheMaxMs: 60_000 });
      const limiter = createLimiter({ store, limits: limitsOf(history), validate: false });
      await expectLanes(history, { limiter, adjust: limiter.adjust.bind(limiter) }, undefined);
      hits += store.stats().localRejections;
    }),
    { numRuns: RUNS },
  );
  expect(hits).toBeGreaterThan(RUNS);
});

it('S20: rejections of several lanes are repeated without a call, whichever was first', async () => {
  const store = newStore({ denyCacheMaxMs: 60_000 });
  const limits: LimiterOptions['limits'] = { default: ['4/1h'], lanes: { bulk: 0.5, batch: 0.25 } };
  const limiter = createLimiter({ store, limits });
  const accepted = async (lane?: string) => (await limiter.consume({ account: 'a', lane })).accepted;
  expect([await accepted('batch'), await accepted('bulk')]).toEqual([true, true]);
  expect([await accepted('batch'), await accepted('bulk')]).toEqual([false, false]);
  expect([await accepted(), await accepted(), await accepted()]).toEqual([true, true, false]);
  const { calls } = store.stats();
  for (let i = 0; i < 5; i++)
    expect([await accepted('bulk'), await accepted(), await accepted('batch')]).toEqual([false, false, false]);
  expect(store.stats().calls).toBe(calls);
  await limiter.reset({ account: 'a' });
  expect([await accepted('bulk'), await accepted('batch'), await accepted()]).toEqual([true, false, true]);
});
