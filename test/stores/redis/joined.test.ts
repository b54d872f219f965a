/** S28, S29, S31, S33: groups, units, lanes and requests in flight together on Redis and a cluster. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, inject, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { expectJoined, joinedHistories, joinedLimits } from '../../support/joined-histories.ts';
import { CLUSTER_CLIENTS, type Connect, type ConnectedClient } from '../../support/redis-clients.ts';

const { port, clusterPorts } = inject('redis');
const client = new Redis({ port, host: '127.0.0.1' });
let cluster: ConnectedClient;
beforeAll(async () => {
  await client.ping();
  cluster = await (CLUSTER_CLIENTS['ioredis Cluster by default'] as Connect<readonly number[]>)(clusterPorts);
});
afterAll(async () => {
  client.disconnect();
  await cluster.disconnect();
});

let stores = 0;

it.each([
  ['Redis', () => client, 30],
  ['a cluster', () => cluster.client, 10],
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
