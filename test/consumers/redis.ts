// The Redis stores, with both clients, and without a framework.
import { createIdempotency, createLimiter } from 'headgate';
import { createFileAdjustments } from 'headgate/file';
import { createRedisAdjustments, createRedisClaimStore, createRedisStore } from 'headgate/redis';
import { createSharedLimits } from 'headgate/shared-limits';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';

const client = new Redis({ lazyConnect: true });
export const limiter = createLimiter({
  store: createRedisStore(client, { prefix: 'p' }),
  limits: { allMethods: ['60/1m'] },
});
export const idempotency = createIdempotency({ store: createRedisClaimStore(client) });
export const shared = [createRedisAdjustments(client), createFileAdjustments('limits.json')].map((adjustments) =>
  createSharedLimits({ base: { allMethods: ['60/1m'] }, adjustments }),
);
export const others = [
  createRedisStore(new Cluster([])),
  createRedisStore(createClient()),
  createRedisStore(createCluster({ rootNodes: [] })),
];
// @ts-expect-error a URL is not a client
createRedisStore('redis://localhost');
