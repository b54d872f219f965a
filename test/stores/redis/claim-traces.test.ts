import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { replayTrace } from '../../model/replay.ts';
import { readTraceFile } from '../../model/trace-file.ts';

/** They run side by side, so their commands share round trips. */
const AT_A_TIME = 50;

const redis = new Redis({ port: inject('redis').port, host: '127.0.0.1' });
beforeAll(() => redis.ping());
afterAll(() => redis.disconnect());

describe('the traces of docs/claim.pml', () => {
  it('are what the script for Redis does, step by step', async () => {
    const all = readTraceFile().sets.flatMap((set) => set.traces.map((trace) => ({ set, trace })));
    for (let from = 0; from < all.length; from += AT_A_TIME) {
      const runs = all.slice(from, from + AT_A_TIME).map(({ set, trace }, i) => {
        const clock = createFakeClock(1_000_000_000_000);
        const prefix = `traces-${process.pid}-${from + i}`;
        return replayTrace(createRedisClaimStore(redis, { clock, prefix, deadlineMs: 60_000 }), clock, trace, set);
      });
      await Promise.all(runs);
    }
    expect(all.length).toBeGreaterThan(1_000);
  });
});
