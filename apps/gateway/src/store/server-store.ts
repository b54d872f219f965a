import { parseLimit } from 'headgate';
import type { RedisStoreStats } from 'headgate/redis';
import type { ClaimStore, LimitStore } from 'headgate/stores';
import { createWindowSet } from 'headgate/stores';
import { createErrorLog, type ErrorFields } from '../base/error-log.ts';
import type { Config } from '../config/schema.ts';
import type { Log } from '../operations/log.ts';
import { examineStore } from './doctor.ts';

/** Longest wait for the server at start. After it the gateway serves degraded, and recovers. */
export const START_MS = 2_000;
/** Route and plan of a call that only tests the store. Its account is empty, which no account of a config can be. */
const HEALTH = 'GET /healthz';
const PROBE = createWindowSet([], parseLimit(['1/1s']));

/** A store with a circuit breaker. */
type Breaking<Store> = Store & { stats(): { readonly breaker: 'closed' | 'open' | 'half-open' } };

/**
 * The health of two stores on one server.
 * @param answers whether the server answers now
 */
export function serverHealth(
  limits: Breaking<LimitStore>,
  claims: Breaking<ClaimStore>,
  answers: () => Promise<boolean>,
): () => Promise<'ok' | 'degraded'> {
  const isWell = () => limits.stats().breaker === 'closed' && claims.stats().breaker === 'closed';
  return async () => {
    if (!(await answers())) return 'degraded';
    // A circuit breaker closes only after a call succeeds. If there is no traffic, the health check must make that
    // call.
    if (!isWell())
      await Promise.allSettled([limits.peek('', HEALTH, PROBE), claims.inspect({ scope: '', key: HEALTH })]);
    return isWell() ? 'ok' : 'degraded';
  };
}

/** Writes the messages and the errors of a store into the log. */
export function storeLog({ logger }: Log, logError: (fields: ErrorFields) => void) {
  return {
    onError: createErrorLog(logError),
    logger: (message: string, err: unknown): void =>
      err === undefined ? logger.info(message) : logger.warn({ err }, message),
  };
}

/** Logs the doctor's warnings and faults. Serving does not wait for it. */
export async function logFindings(config: Config, log: Log): Promise<void> {
  for (const { verdict, subject, text } of await examineStore(config)) {
    if (verdict !== 'ok') log.logger.warn({ subject, verdict }, `store: ${text}`);
  }
}

/**
 * The figures of two stores on one server.
 * @param limits with the circuit breaker that counts: that of addresses may wait for a request
 */
export function sumOfStats(limits: RedisStoreStats, addresses: RedisStoreStats): RedisStoreStats {
  return {
    calls: limits.calls + addresses.calls,
    coalesced: limits.coalesced + addresses.coalesced,
    localRejections: limits.localRejections + addresses.localRejections,
    timeouts: limits.timeouts + addresses.timeouts,
    late: limits.late + addresses.late,
    degraded: limits.degraded + addresses.degraded,
    breaker: limits.breaker,
  };
}
