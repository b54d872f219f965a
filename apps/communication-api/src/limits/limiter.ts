import { createLimiter, type Limiter } from 'headgate';
import { createMemoryStore, type MemoryStore } from 'headgate/memory';
import { createRedisStore, type RedisStore } from 'headgate/redis';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { LimitBook } from './book.ts';

/** Most (account, route) pairs in the memory of a process. */
const MAX_KEYS = 262_144;
const REDIS_DEADLINE_MS = 250;

/** The counters of the limits, with their figures. */
export type LimitStore = MemoryStore | RedisStore;

/**
 * Creates the counters. If Redis does not answer in time, the memory of the process decides.
 * @param redis shared by all processes; undefined: this process counts for itself
 * @param prefix of the keys in Redis. Each limiter uses its own prefix
 */
export const createLimitStore = (
  redis: Redis | undefined,
  log: Pick<Logger, 'warn'>,
  prefix: 'ca' | 'ca-forms' | 'ca-passwords' | 'ca-codes' = 'ca',
): LimitStore =>
  redis === undefined
    ? createMemoryStore({ maxKeys: MAX_KEYS })
    : createRedisStore(redis, {
        prefix,
        deadlineMs: REDIS_DEADLINE_MS,
        onStoreFailure: 'local',
        logger: (message: string, err: unknown): void => log.warn({ err }, message),
      });

/** The parts of the service's limiter. */
export interface LimiterParts {
  readonly book: LimitBook;
  readonly store: LimitStore;
  readonly log: Pick<Logger, 'warn'>;
}

/** The limiter of the Methods API. A request names the account by its id, and the provider by `limitProvider()`. */
export const createServiceLimiter = ({ book, store, log }: LimiterParts): Limiter =>
  createLimiter({
    store,
    logger: (message: string, err: unknown): void => log.warn({ err }, message),
    limits: ({ account, provider = '' }) => book.of(account, provider),
  });
