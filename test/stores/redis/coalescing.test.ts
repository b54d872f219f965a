import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { type RedisServer, startRedis } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LimitStore } from '../../../src/core/ports.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { createArbitraries } from '../../../src/testing/arbitraries.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';

// A separate server, because its commands are counted while other test files use theirs.
let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await startRedis();
  client = new Redis({ port: server.port, host: '127.0.0.1' });
  await client.ping();
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

const PAIRS = [
  ['a', 'r'],
  ['a', 's'],
  ['b', 'r'],
] as const;

/** Requests of one turn: index of the pair, index of the plan, cost, and of leases the number of requests. */
const check = fc.record({
  pair: fc.nat(2),
  plan: fc.nat(30),
  cost: fc.integer({ min: 1, max: 2 }),
  requests: fc.option(fc.integer({ min: 1, max: 6 }), { freq: 4 }),
});
const checks = fc.array(check, { minLength: 1, maxLength: 40 });
const { windowSet } = createArbitraries(fc);
const turns = fc.record({
  plans: fc.array(windowSet, { minLength: 1, maxLength: 2 }),
  turns: fc.array(fc.record({ checks, wait: fc.nat(2_000) }), { minLength: 1, maxLength: 4 }),
});

let stores = 0;
const newPrefix = (): string => `turn-${process.pid}-${stores++}`;

/** How many EVALSHA and EVAL a server has run. */
async function scriptsRun(): Promise<number> {
  const stats = await client.info('commandstats');
  return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

describe('requests of one turn of the event loop', () => {
  it('get the same decisions as one by one in memory, whatever their pairs, plans and costs', async () => {
    const property = fc.asyncProperty(turns, async ({ plans: windowSets, turns }) => {
      const clock = createFakeClock(1_000_000_000_000);
      const memory = createMemoryStore({ clock });
      const redis = createRedisStore(client, { clock, prefix: newPrefix(), deadlineMs: 10_000 });
      for (const { checks, wait } of turns) {
        const ask = async (store: LimitStore, { pair, plan, cost, requests }: (typeof checks)[number]) => {
          const [account, route] = PAIRS[pair] as (typeof PAIRS)[number];
          const windowSet = windowSets[plan % windowSets.length] as (typeof windowSets)[number];
          if (requests === null) return comparable(await store.consume(account, route, windowSet, cost));
          const grant = await (store as Required<LimitStore>).lease(account, route, windowSet, cost, requests);
          return { ...comparable(grant.decision), granted: grant.granted };
        };
        const actual = await Promise.all(checks.map((asked) => ask(redis, asked)));
        const expected = await Promise.all(checks.map((asked) => ask(memory, asked)));
        expect(actual).toEqual(expected);
        clock.advance(wait);
      }
    });
    await fc.assert(property, { numRuns: randomRuns(100) });
  });

  it('with the same plan and cost are sent in one call, whatever their pairs, unless that would change their order', async () => {
    const own = new Redis({ port: server.port, host: '127.0.0.1' });
    try {
      await own.ping();
      const store = createRedisStore(own, { prefix: newPrefix(), deadlineMs: 10_000, denyCacheMaxMs: 0 });
      const one = createWindowSet([], [{ max: 5, durationMs: 60_000 }]);
      const two = createWindowSet([], [{ max: 7, durationMs: 60_000 }]);
      await store.consume('warm', 'up', one, 1);
      const before = await scriptsRun();
      const callsBefore = store.stats().calls;
      const ask = (times: number, account: string, windowSet: typeof one, cost: number): unknown[] =>
        Array.from({ length: times }, () => store.consume(account, 'r', windowSet, cost));
      await Promise.all([
        ...ask(50, 'a', one, 1),
        ...ask(20, 'b', one, 1),
        ...ask(10, 'a', one, 1),
        ...ask(3, 'a', one, 2),
        ...ask(3, 'a', two, 2),
        // Cannot join the first ones, because other requests of this pair came in between.
        ...ask(1, 'a', one, 1),
      ]);
      expect(store.stats()).toMatchObject({ calls: callsBefore + 4, coalesced: 87 - 4, degraded: 0 });
      expect((await scriptsRun()) - before).toBe(4);
    } finally {
      own.disconnect();
    }
  });

  it('S20: cost one round trip, however many windows the plan has', async () => {
    const store = createRedisStore(client, { prefix: newPrefix(), deadlineMs: 10_000 });
    const durations = [1_000, 60_000, 3_600_000, 86_400_000];
    const limit = durations.map((durationMs) => ({ max: 10, durationMs }));
    const before = await scriptsRun();
    expect((await store.consume('a', 'r', createWindowSet(limit, limit), 1)).trace).toHaveLength(8);
    expect((await scriptsRun()) - before).toBe(1);
  });
});

function comparable({
  accepted,
  decidedAt,
  degraded,
  shown,
  trace,
}: Awaited<ReturnType<ReturnType<typeof createRedisStore>['consume']>>) {
  // A decision for an empty plan is not made by Redis, so it does not have the server's time.
  return { accepted, degraded, shown, trace, decidedAt: trace.length === 0 ? 0 : decidedAt };
}
