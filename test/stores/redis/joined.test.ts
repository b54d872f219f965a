/** S28, S29, S31, S33: groups, units, lanes and requests in flight together on Redis and a cluster. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import type { Redis } from 'ioredis';
import { it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { clusterForFile, redisForFile } from '../../support/ioredis-for-file.ts';
import { expectJoined, joinedHistories, joinedLimits } from '../../support/joined-histories.ts';

const client = redisForFile();
const cluster = clusterForFile();

let stores = 0;

it.each([
  ['Redis', () => client, 30],
  ['a cluster', () => cluster, 10],
] as const)('on %s, a request fits everything or changes nothing', async (_, clientOf, runs) => {
  await fc.assert(
    fc.asyncProperty(joinedHistories, async (history) => {
      const clock = createFakeClock(1_000_000);
      const prefix = `joined-${process.pid}-${stores++}`;
      const store = createRedisStore(clientOf() as Redis, { prefix, clock, deadlineMs: 10_000 });
      const limiter = createLimiter({ store, limits: joinedLimits(history), validate: false });
      await expectJoined(history, limiter, clock, 4);
      await limiter.close();
    }),
    { numRuns: NIGHTLY ? 20 * runs : runs },
  );
});
