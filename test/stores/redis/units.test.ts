/** S33 on real servers: units on one server and on a cluster, where an account's units share a slot. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';

import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createLeases } from '../../../src/limits/index.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { clusterForFile, redisForFile } from '../../support/ioredis-for-file.ts';
import { hasWindows, runUnitHistory, unitHistory } from '../../support/unit-histories.ts';

const clients = { server: redisForFile(), cluster: clusterForFile() };

let prefixes = 0;
const newPrefix = (): string => `units-${process.pid}-${prefixes++}`;
const LIMITS = ['9/1h', '1000 tokens/1h'];
const COST = { requests: 1, tokens: 400 };

describe.each(Object.entries(clients))('on a %s', (name, client) => {
  it('S33: decides as the naive model does', async () => {
    await fc.assert(
      fc.asyncProperty(unitHistory.filter(hasWindows), async (history) => {
        const clock = createFakeClock(1_000_000);
        const store = createRedisStore(client, { prefix: newPrefix(), clock, deadlineMs: 10_000 });
        await runUnitHistory(store, clock, history);
      }),
      { numRuns: NIGHTLY ? 300 : name === 'server' ? 30 : 8 },
    );
  });

  it('S20: an accept is a call per unit in one trip, and a cached rejection none', async () => {
    const store = createRedisStore(client, { prefix: newPrefix(), deadlineMs: 10_000 });
    const limiter = createLimiter({ store, limits: LIMITS, logger: false });
    const consume = (tokens: number) => limiter.consume({ account: 'a', cost: { requests: 1, tokens } });
    expect((await consume(1_000)).accepted).toBe(true);
    expect(store.stats().calls).toBe(2);
    expect(await consume(1)).toMatchObject({ accepted: false, shown: { unit: 'tokens', remaining: 0 } });
    const { calls } = store.stats();
    expect(await consume(1)).toMatchObject({ accepted: false, shown: { unit: 'tokens', remaining: 0 } });
    expect(store.stats().calls).toBe(calls);
    // The rejections charged no request.
    expect(await limiter.peek({ account: 'a' })).toMatchObject([{ remaining: 8 }, { remaining: 0 }]);
  });
});

it('S32: leases serve each unit, and give back what is left', async () => {
  const prefix = newPrefix();
  const leases = createLeases({ leaseMs: 2_000 });
  const store = createRedisStore(clients.server, { prefix, deadlineMs: 10_000 });
  const limiter = createLimiter({ store, limits: ['100/1h', '100000 tokens/1h'], leases, logger: false });
  for (let i = 0; i < 60; i++) expect((await limiter.consume({ account: 'a', cost: COST })).accepted).toBe(true);
  expect(store.stats().calls).toBeLessThan(80);
  const decision = await limiter.consume({ account: 'a', cost: COST });
  expect(await limiter.settle(decision, { tokens: 500 })).toBe(true);
  await limiter.close();
  const after = createLimiter({
    store: createRedisStore(clients.server, { prefix, deadlineMs: 10_000 }),
    limits: ['100/1h', '100000 tokens/1h'],
    logger: false,
  });
  const [requests, tokens] = await after.peek({ account: 'a' });
  expect([requests?.remaining, tokens?.remaining]).toEqual([39, 100_000 - 60 * 400 - 500]);
});
