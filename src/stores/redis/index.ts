/**
 * Stores in Redis, Redis Cluster or Valkey, which several processes can share.
 * @module headgate/redis
 */

export type { ReadyOptions } from '../../core/ports.ts';
export { STORE_CHANNEL, type StoreCall } from '../../core/store-channel.ts';
export type { OnStoreFailure } from '../shared/failover.ts';
export { createRedisAdjustments, type RedisAdjustmentsOptions } from './adjustments.ts';
export type { LargeValueOptions, RedisClaimStoreOptions } from './claim-options.ts';
export { createRedisClaimStore, type RedisClaimStore, type RedisClaimStoreStats } from './claims.ts';
export type { RedisClient } from './client.ts';
export { createRedisStore, type RedisStore, type RedisStoreOptions, type RedisStoreStats } from './limits.ts';
