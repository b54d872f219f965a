import { createIdempotency, type Idempotency } from 'headgate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import { createMemoryClaimStore, type MemoryClaimStore } from 'headgate/memory';
import { createRedisClaimStore, type RedisClaimStore } from 'headgate/redis';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

/** A duplicate waits for its original about as long as a provider may take in practice. */
const WAIT_MS = 20_000;
/** How long a retry waits for a process that died. The journal fences, so it may be short. */
const LEASE_MS = 10_000;
const MAX_RUN_MS = 600_000;

/** The store of idempotency keys, with its figures. */
export type ClaimStore = MemoryClaimStore | RedisClaimStore;

/** @param redis shared by all processes; undefined: the memory of this process */
export const createClaimStore = (redis: Redis | undefined, log: Pick<Logger, 'warn'>): ClaimStore =>
  redis === undefined
    ? createMemoryClaimStore()
    : createRedisClaimStore(redis, { prefix: 'ca', logger: (message, err) => log.warn({ err }, message) });

/**
 * Idempotency keys of the Methods API. The journal decides what was sent, so a retry may always run: it asks the
 * journal first. That is why a lost or unreachable store never sends an email twice.
 */
export const createServiceIdempotency = (store: ClaimStore, onEvent: (event: IdempotencyEvent) => void): Idempotency =>
  createIdempotency({
    store,
    onEvent,
    onOrphan: 'reexecute',
    onStoreFailure: 'bypass',
    leaseMs: LEASE_MS,
    waitMs: WAIT_MS,
    maxRunMs: MAX_RUN_MS,
  });
