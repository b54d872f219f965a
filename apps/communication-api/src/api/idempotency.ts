import { createIdempotency, type Idempotency } from 'headgate';
import { createMemoryClaimStore } from 'headgate/memory';
import { createRedisClaimStore } from 'headgate/redis';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

/** A duplicate waits for its original about as long as a provider may take in practice. */
const WAIT_MS = 20_000;
/** A retry waits so long for a process that died. The journal fences, so it may be short. */
const LEASE_MS = 10_000;
const MAX_RUN_MS = 600_000;

/**
 * Idempotency keys of the Methods API. The journal decides what was sent, so a retry may always run: it asks the journal
 * first. That is why a lost or unreachable store never sends an email twice.
 * @param redis shared by all processes; undefined: the memory of this process
 */
export const createServiceIdempotency = (redis: Redis | undefined, log: Pick<Logger, 'warn'>): Idempotency =>
  createIdempotency({
    store:
      redis === undefined
        ? createMemoryClaimStore()
        : createRedisClaimStore(redis, { prefix: 'ca', logger: (message, err) => log.warn({ err }, message) }),
    onOrphan: 'reexecute',
    onStoreFailure: 'bypass',
    leaseMs: LEASE_MS,
    waitMs: WAIT_MS,
    maxRunMs: MAX_RUN_MS,
  });
