export {
  createRedisClaimStore,
  type RedisClaimStore,
  type RedisClaimStoreOptions,
  type RedisClaimStoreStats,
} from './claims.ts';
export { createRedisStore, type RedisStore, type RedisStoreOptions, type RedisStoreStats } from './store.ts';
