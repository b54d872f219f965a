import type { MemoryClaimStoreStats, MemoryStoreStats } from 'headgate/memory';
import type { PostgresStoreStats } from 'headgate/postgres';
import type { RedisClaimStoreStats, RedisStoreStats } from 'headgate/redis';

/** A metric whose value is read at every scrape. The name of a counter ends in `_total`. */
export interface ReadMetric {
  readonly type: 'counter' | 'gauge';
  readonly name: string;
  readonly help: string;
  read(): number;
}

export const gauge = (name: string, help: string, read: () => number): ReadMetric => ({
  ...{ type: 'gauge', name, help },
  read,
});

const counter = (name: string, help: string, read: () => number): ReadMetric => ({
  ...{ type: 'counter', name, help },
  read,
});

const BREAKER = { closed: 0, 'half-open': 1, open: 2 } as const;
const BREAKER_HELP = 'State of the circuit breaker: 0 closed, 1 half-open, 2 open';

/**
 * The figures of headgate's store of limits, under the same names as in the gateway process of headgate.
 * @param server has the counters, unless they are in memory
 */
export function limitStoreMetrics(
  server: 'postgres' | 'redis',
  stats: () => MemoryStoreStats | PostgresStoreStats | RedisStoreStats,
): readonly ReadMetric[] {
  if ('breaker' in stats()) {
    const all = stats as () => PostgresStoreStats | RedisStoreStats;
    const name = (end: string): string => `headgate_${server}_store_${end}`;
    return [
      counter(name('calls_total'), 'Calls sent to the server of the counters', () => all().calls),
      counter(name('coalesced_checks_total'), 'Decisions that shared the call of another one', () => all().coalesced),
      counter(name('local_rejections_total'), 'Rejections answered from the local cache', () => all().localRejections),
      counter(name('deadline_misses_total'), 'Calls that missed their deadline', () => all().timeouts),
      counter(
        name('degraded_decisions_total'),
        'Decisions made by the memory of this process, since the server did not answer',
        () => all().degraded,
      ),
      gauge(name('breaker'), BREAKER_HELP, () => BREAKER[all().breaker]),
    ];
  }
  const memory = stats as () => MemoryStoreStats;
  return [
    gauge('headgate_memory_store_keys', 'Pairs of account and route in memory', () => memory().keys),
    gauge('headgate_memory_store_max_keys', 'Most pairs of account and route in memory', () => memory().maxKeys),
    counter(
      'headgate_memory_store_refused_total',
      'Decisions refused because every pair in memory has an active window',
      () => memory().refused,
    ),
  ];
}

/** The figures of headgate's store of idempotency keys, under the same names as in the gateway process of headgate. */
export function claimStoreMetrics(stats: () => MemoryClaimStoreStats | RedisClaimStoreStats): readonly ReadMetric[] {
  if ('breaker' in stats()) {
    const redis = stats as () => RedisClaimStoreStats;
    return [
      counter('headgate_redis_claims_calls_total', 'Commands sent to Redis', () => redis().calls),
      counter(
        'headgate_redis_claims_deadline_misses_total',
        'Commands that missed their deadline',
        () => redis().timeouts,
      ),
      counter(
        'headgate_redis_claims_refused_in_scope_total',
        'Requests refused because their application has too many keys',
        () => redis().refusedInScope,
      ),
      gauge('headgate_redis_claims_breaker', BREAKER_HELP, () => BREAKER[redis().breaker]),
    ];
  }
  const memory = stats as () => MemoryClaimStoreStats;
  return [
    gauge('headgate_memory_claims_keys', 'Idempotency keys in memory', () => memory().keys),
    gauge('headgate_memory_claims_max_keys', 'Most idempotency keys in memory', () => memory().maxKeys),
    gauge('headgate_memory_claims_bytes', 'Bytes of stored answers', () => memory().bytes),
    gauge('headgate_memory_claims_max_bytes', 'Most bytes of stored answers', () => memory().maxBytes),
    counter(
      'headgate_memory_claims_refused_total',
      'Requests refused because every key in memory is within its retention',
      () => memory().refused,
    ),
    counter(
      'headgate_memory_claims_refused_in_scope_total',
      'Requests refused because their application has too many keys',
      () => memory().refusedInScope,
    ),
  ];
}
