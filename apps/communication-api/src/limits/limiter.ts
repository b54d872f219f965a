import { createLimiter, type Limiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { createRedisStore } from 'headgate/redis';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { LimitBook } from './book.ts';

/** Most (account, route) pairs in the memory of a process. */
const MAX_KEYS = 262_144;
const REDIS_DEADLINE_MS = 250;

/** What the limiter of the service is made of. */
export interface LimiterParts {
  readonly book: LimitBook;
  /** Shared by all processes. Undefined: this process counts for itself. */
  readonly redis?: Redis | undefined;
  readonly log: Pick<Logger, 'warn'>;
}

/**
 * The limiter of the Methods API. A request names the account by its id, and the provider by `limitProvider()`. If Redis
 * does not answer in time, the memory of the process decides.
 */
export function createServiceLimiter({ book, redis, log }: LimiterParts): Limiter {
  const logger = (message: string, err: unknown): void => log.warn({ err }, message);
  return createLimiter({
    store:
      redis === undefined
        ? createMemoryStore({ maxKeys: MAX_KEYS })
        : createRedisStore(redis, {
            prefix: 'ca',
            deadlineMs: REDIS_DEADLINE_MS,
            onStoreFailure: 'local',
            logger,
          }),
    logger,
    limits: ({ account, provider = '' }) => book.of(account, provider),
  });
}
