import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import type { RedisClient } from '../../../src/stores/redis/client.ts';
import { claimStoreSuite } from '../../../src/testing/claim-store-suite.ts';

const { port, clusterPorts } = inject('redis');
const rootNodes = clusterPorts.map((each) => ({ url: `redis://127.0.0.1:${each}` }));
const ioredis = new Redis({ port });
const ioredisCluster = new Cluster(clusterPorts.map((each) => ({ host: '127.0.0.1', port: each })));
const nodeRedis = createClient({ url: `redis://127.0.0.1:${port}` });
const nodeRedisCluster = createCluster({ rootNodes });

beforeAll(async () => {
  await Promise.all([ioredis.ping(), ioredisCluster.ping(), nodeRedis.connect(), nodeRedisCluster.connect()]);
});
afterAll(async () => {
  ioredis.disconnect();
  ioredisCluster.disconnect();
  await Promise.all([nodeRedis.close(), nodeRedisCluster.close()]);
});

let stores = 0;
const subjects: readonly [string, RedisClient, number][] = [
  ['ioredis', ioredis, randomRuns(200)],
  ['ioredis Cluster', ioredisCluster, randomRuns(50)],
  ['node-redis', nodeRedis as unknown as RedisClient, randomRuns(60)],
  ['node-redis cluster', nodeRedisCluster as unknown as RedisClient, randomRuns(40)],
];
for (const [name, client, histories] of subjects) {
  claimStoreSuite({ describe, it }, fc, {
    name,
    histories,
    create: (clock) =>
      createRedisClaimStore(client, { clock, prefix: `claims-${process.pid}-${stores++}`, deadlineMs: 10_000 }),
  });
}
