import { createLimiter, type Limiter } from 'headgate';
import type { Leases } from 'headgate/limits';
import { createMemoryStore, type MemoryStore } from 'headgate/memory';
import { createPostgresStore, type PostgresClient, type PostgresStore } from 'headgate/postgres';
import { createRedisStore, type RedisStore } from 'headgate/redis';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { AccountLimits } from './account-limits.ts';

/** Most (account, route) pairs in the memory of a process. */
const MAX_KEYS = 262_144;
const REDIS_DEADLINE_MS = 250;

/** Counters, with their figures. */
export type LimitStore = MemoryStore | RedisStore | PostgresStore;

/**
 * Creates counters. If their server does not answer in time, the memory of the process decides.
 * @param redis undefined without REDIS_URL
 * @param postgres undefined with the embedded database: its only process counts in its memory
 */
export function createLimitStore(
  redis: Redis | undefined,
  postgres: PostgresClient | undefined,
  log: Pick<Logger, 'warn'>,
): LimitStore {
  const logger = (message: string, err: unknown): void => log.warn({ err }, message);
  if (redis !== undefined)
    return createRedisStore(redis, { prefix: 'ca', deadlineMs: REDIS_DEADLINE_MS, onStoreFailure: 'local', logger });
  if (postgres !== undefined) return createPostgresStore(postgres, { onStoreFailure: 'local', logger });
  return createMemoryStore({ maxKeys: MAX_KEYS });
}

/**
 * The limiter of the Methods API. A request names the account by its id, and the provider by `limitProvider()`.
 * @param leases undefined: each decision is a call of the store
 */
export const createServiceLimiter = (
  limits: AccountLimits,
  store: LimitStore,
  log: Pick<Logger, 'warn'>,
  leases?: Leases,
): Limiter =>
  createLimiter({
    store,
    leases,
    logger: (message: string, err: unknown): void => log.warn({ err }, message),
    limits: limits.shared,
  });
