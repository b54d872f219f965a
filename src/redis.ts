/**
 * Stores in Redis, Redis Cluster or Valkey, which several processes can share.
 * @module headgate/redis
 */

export type { ReadyOptions } from './core/ports.ts';
export { STORE_CHANNEL, type StoreCall } from './core/store-channel.ts';
export { createRedisAdjustments, type RedisAdjustmentsOptions } from './shared-limits/stores/redis.ts';
export type { LargeValueOptions, RedisClaimStoreOptions } from './stores/redis/claim-options.ts';
export { createRedisClaimStore, type RedisClaimStore, type RedisClaimStoreStats } from './stores/redis/claims.ts';
export type { RedisClient } from './stores/redis/client.ts';
export {
  createRedisStore,
  type RedisStore,
  type RedisStoreOptions,
  type RedisStoreStats,
} from './stores/redis/limits.ts';
export type { UpstashClient } from './stores/redis/upstash.ts';
export type { OnStoreFailure } from './stores/shared/failover.ts';
export { MIN_BYTES_PER_MS } from './stores/shared/large-values.ts';
