import type { LeaseStats } from 'headgate/limits';
import type { MemoryStoreStats } from 'headgate/memory';
import type { PostgresClaimStoreStats, PostgresStoreStats } from 'headgate/postgres';
import type { RedisStoreStats } from 'headgate/redis';

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

/** The figures of headgate's store of idempotency keys. */
export const claimStoreMetrics = (stats: () => PostgresClaimStoreStats): readonly ReadMetric[] => [
  counter('headgate_postgres_claims_calls_total', 'Commands sent to the database', () => stats().calls),
  counter(
    'headgate_postgres_claims_deadline_misses_total',
    'Commands that missed their deadline',
    () => stats().timeouts,
  ),
  counter(
    'headgate_postgres_claims_refused_in_scope_total',
    'Requests refused because their application has too many keys',
    () => stats().refusedInScope,
  ),
  gauge('headgate_postgres_claims_breaker', BREAKER_HELP, () => BREAKER[stats().breaker]),
];

/** The figures of leases, under the same names as in the gateway process of headgate. */
export const leaseMetrics = (stats: () => LeaseStats): readonly ReadMetric[] => [
  counter('headgate_leases_decisions_total', 'Decisions from leases, without a call', () => stats().decisions),
  counter(
    'headgate_leases_lost_units_total',
    'Units that stay charged until their windows are over',
    () => stats().lost,
  ),
  gauge('headgate_leases_held_units', 'Units charged ahead that no request took yet', () => stats().held),
];
