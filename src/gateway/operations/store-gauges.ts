import type { MemoryClaimStoreStats } from '../../stores/memory/claims.ts';
import type { MemoryStoreStats } from '../../stores/memory/limits.ts';
import type { RedisClaimStoreStats } from '../../stores/redis/claims.ts';
import type { RedisStoreStats } from '../../stores/redis/limits.ts';

/** A gauge for `/metrics`, read when it is scraped. */
export interface StoreGauge {
  /** Without the prefix `headgate_`. */
  readonly name: string;
  readonly help: string;
  value(): number;
  /** How the values of several workers become one. Default: their sum. */
  readonly aggregator?: 'sum' | 'max';
}

type Make<Stats> = (name: string, help: string, read: (stats: Stats) => number) => StoreGauge;

function gaugesWith<Stats>(prefix: string, stats: () => Stats): Make<Stats> {
  return (name, help, read) => ({ name: `${prefix}_${name}`, help, value: () => read(stats()) });
}

export function memoryLimitGauges(stats: () => MemoryStoreStats): StoreGauge[] {
  const gauge = gaugesWith('memory_store', stats);
  return [
    gauge('keys', 'Pairs of account and route in memory', ({ keys }) => keys),
    gauge('max_keys', 'Most pairs of account and route in memory', ({ maxKeys }) => maxKeys),
    gauge('refused', 'Decisions refused because every pair in memory has an active window (S18)', (all) => all.refused),
    gauge('swept', 'Pairs removed after their windows had ended', ({ swept }) => swept),
  ];
}

export function memoryClaimGauges(stats: () => MemoryClaimStoreStats): StoreGauge[] {
  const gauge = gaugesWith('memory_claims', stats);
  return [
    gauge('keys', 'Idempotency keys in memory', ({ keys }) => keys),
    gauge('max_keys', 'Most idempotency keys in memory', ({ maxKeys }) => maxKeys),
    gauge('bytes', 'Bytes of stored answers', ({ bytes }) => bytes),
    gauge('max_bytes', 'Most bytes of stored answers', ({ maxBytes }) => maxBytes),
    gauge('refused', 'Requests refused because every key in memory is within its retention', ({ refused }) => refused),
    gauge(
      'refused_in_scope',
      'Requests refused because their application has too many keys (I13)',
      ({ refusedInScope }) => refusedInScope,
    ),
    gauge('forgotten', 'Released keys forgotten to make room for new ones', ({ forgotten }) => forgotten),
    gauge('dropped', 'Answers dropped to make room; their retries get 409', ({ dropped }) => dropped),
    gauge('swept', 'Keys removed after their retention', ({ swept }) => swept),
  ];
}

const BREAKER = { closed: 0, 'half-open': 1, open: 2 } as const;
const BREAKER_HELP = 'State of the circuit breaker: 0 closed, 1 half-open, 2 open';

export function redisLimitGauges(stats: () => RedisStoreStats): StoreGauge[] {
  const gauge = gaugesWith('redis_store', stats);
  return [
    gauge('calls', 'Scripts sent to Redis', ({ calls }) => calls),
    gauge('coalesced_checks', 'Checks sent together with another check', ({ coalesced }) => coalesced),
    gauge('local_rejections', 'Rejections answered from the local cache (S20)', (all) => all.localRejections),
    gauge('deadline_misses', 'Calls that missed their deadline', ({ timeouts }) => timeouts),
    gauge('late_answers', 'Calls that were answered after their deadline', ({ late }) => late),
    gauge('degraded_decisions', 'Decisions made by the failure policy (S17)', ({ degraded }) => degraded),
    { ...gauge('breaker', BREAKER_HELP, ({ breaker }) => BREAKER[breaker]), aggregator: 'max' },
  ];
}

export function redisClaimGauges(stats: () => RedisClaimStoreStats): StoreGauge[] {
  const gauge = gaugesWith('redis_claims', stats);
  return [
    gauge('calls', 'Commands for idempotency keys sent to Redis', ({ calls }) => calls),
    gauge('deadline_misses', 'Commands that missed their deadline', ({ timeouts }) => timeouts),
    gauge('late_answers', 'Commands that were answered after their deadline', ({ late }) => late),
    gauge(
      'refused_in_scope',
      'Requests refused because their application has too many keys (I13)',
      ({ refusedInScope }) => refusedInScope,
    ),
    { ...gauge('breaker', BREAKER_HELP, ({ breaker }) => BREAKER[breaker]), aggregator: 'max' },
    gauge('large_bytes', 'Bytes of large answers that wait for Redis or are on their way', ({ large }) => large.bytes),
    gauge('large_deadline_misses', 'Large answers that missed their deadline', ({ large }) => large.timeouts),
    gauge('large_refused', 'Large answers refused by the budget of their application', ({ large }) => large.refused),
    gauge('large_dropped', 'Outcomes stored without their large answer', ({ large }) => large.dropped),
    {
      ...gauge(
        'large_breaker',
        'Circuit breaker of large answers: 0 closed, 1 half-open, 2 open',
        ({ large }) => BREAKER[large.breaker],
      ),
      aggregator: 'max',
    },
  ];
}
