import type { LeaseStats } from 'headgate/limits';
import type { MemoryClaimStoreStats, MemoryStoreStats } from 'headgate/memory';
import type { PostgresClaimStoreStats, PostgresStoreStats } from 'headgate/postgres';
import type { RedisClaimStoreStats, RedisStoreStats } from 'headgate/redis';
import type { MaybePromise } from 'headgate/stores';

/** A metric whose value is read when `/metrics` is scraped. */
export type ScrapedMetric = ScrapedCounter | ScrapedGauge;

/** It only ever grows, and its name ends in `_total`. */
interface ScrapedCounter extends Described {
  readonly type: 'counter';
  value(): number;
}

interface ScrapedGauge extends Described {
  readonly type: 'gauge';
  value(): MaybePromise<number>;
}

interface Described {
  /** Without the prefix `headgate_`. */
  readonly name: string;
  readonly help: string;
  /** How the values of several workers become one. A counter is always summed. @default 'sum' */
  readonly aggregator?: 'sum' | 'max' | 'min';
}

/** Whether the store serves. Asked at each scrape, so that it is known without traffic. */
export function storeUp(health: () => Promise<'ok' | 'degraded'>): ScrapedMetric {
  return {
    type: 'gauge',
    name: 'store_up',
    help: '1 if the store serves, 0 while the failure policy decides in its place',
    value: async () => ((await health()) === 'ok' ? 1 : 0),
    aggregator: 'min',
  };
}

type Make<Stats> = (name: string, help: string, read: (stats: Stats) => number) => ScrapedMetric;

function metricsWith<Stats>(prefix: string, stats: () => Stats): { counter: Make<Stats>; gauge: Make<Stats> } {
  return {
    counter: (name, help, read) => ({
      type: 'counter',
      name: `${prefix}_${name}_total`,
      help,
      value: () => read(stats()),
    }),
    gauge: (name, help, read) => ({ type: 'gauge', name: `${prefix}_${name}`, help, value: () => read(stats()) }),
  };
}

export function memoryLimitMetrics(stats: () => MemoryStoreStats, name = 'memory_store'): ScrapedMetric[] {
  const { counter, gauge } = metricsWith(name, stats);
  return [
    gauge('keys', 'Pairs of account and route in memory', ({ keys }) => keys),
    gauge('max_keys', 'Most pairs of account and route in memory', ({ maxKeys }) => maxKeys),
    counter(
      'refused',
      'Decisions refused because every pair in memory has an active window (S18)',
      (all) => all.refused,
    ),
    counter('swept', 'Pairs removed after their windows had ended', ({ swept }) => swept),
  ];
}

export function memoryClaimMetrics(stats: () => MemoryClaimStoreStats): ScrapedMetric[] {
  const { counter, gauge } = metricsWith('memory_claims', stats);
  return [
    gauge('keys', 'Idempotency keys in memory', ({ keys }) => keys),
    gauge('max_keys', 'Most idempotency keys in memory', ({ maxKeys }) => maxKeys),
    gauge('bytes', 'Bytes of stored answers', ({ bytes }) => bytes),
    gauge('max_bytes', 'Most bytes of stored answers', ({ maxBytes }) => maxBytes),
    counter(
      'refused',
      'Requests refused because every key in memory is within its retention',
      ({ refused }) => refused,
    ),
    counter(
      'refused_in_scope',
      'Requests refused because their application has too many keys (I13)',
      ({ refusedInScope }) => refusedInScope,
    ),
    counter('forgotten', 'Released keys forgotten to make room for new ones', ({ forgotten }) => forgotten),
    counter('dropped', 'Answers dropped to make room; their retries get 409', ({ dropped }) => dropped),
    counter('swept', 'Keys removed after their retention', ({ swept }) => swept),
  ];
}

const BREAKER = { closed: 0, 'half-open': 1, open: 2 } as const;
const BREAKER_HELP = 'State of the circuit breaker: 0 closed, 1 half-open, 2 open';

/** Figures of a limit store on a server. */
export function serverLimitMetrics(
  server: 'redis' | 'postgres',
  stats: () => RedisStoreStats | PostgresStoreStats,
): ScrapedMetric[] {
  const { counter, gauge } = metricsWith(`${server}_store`, stats);
  return [
    counter('calls', CALLS[server].limits, ({ calls }) => calls),
    counter('coalesced_checks', 'Checks sent together with another check', ({ coalesced }) => coalesced),
    counter('local_rejections', 'Rejections answered from the local cache (S20)', (all) => all.localRejections),
    counter('deadline_misses', 'Calls that missed their deadline', ({ timeouts }) => timeouts),
    counter('late_answers', 'Calls that were answered after their deadline', ({ late }) => late),
    counter('degraded_decisions', 'Decisions made by the failure policy (S17)', ({ degraded }) => degraded),
    { ...gauge('breaker', BREAKER_HELP, ({ breaker }) => BREAKER[breaker]), aggregator: 'max' },
  ];
}

const CALLS = {
  redis: { limits: 'Scripts sent to Redis', claims: 'Commands for idempotency keys sent to Redis' },
  postgres: {
    limits: 'Statements for limits sent to PostgreSQL',
    claims: 'Commands for idempotency keys sent to PostgreSQL',
  },
};

export function redisClaimMetrics(stats: () => RedisClaimStoreStats): ScrapedMetric[] {
  const { counter } = metricsWith('redis_claims', stats);
  return [
    ...serverClaimMetrics('redis', stats),
    counter('late_answers', 'Commands that were answered after their deadline', ({ late }) => late),
  ];
}

export function postgresClaimMetrics(stats: () => PostgresClaimStoreStats): ScrapedMetric[] {
  const { counter } = metricsWith('postgres_claims', stats);
  return [
    ...serverClaimMetrics('postgres', stats),
    counter(
      'late_begins',
      'Commands that did nothing, because they reached PostgreSQL too late',
      (all) => all.lateBegins,
    ),
    counter(
      'forgotten_unresolved',
      'Unknown outcomes forgotten after their retention, because their application had too many keys (I13)',
      (all) => all.forgottenUnresolved,
    ),
  ];
}

function serverClaimMetrics(
  server: 'redis' | 'postgres',
  stats: () => RedisClaimStoreStats | PostgresClaimStoreStats,
): ScrapedMetric[] {
  const { counter, gauge } = metricsWith(`${server}_claims`, stats);
  return [
    counter('calls', CALLS[server].claims, ({ calls }) => calls),
    counter('deadline_misses', 'Commands that missed their deadline', ({ timeouts }) => timeouts),
    counter(
      'refused_in_scope',
      'Requests refused because their application has too many keys (I13)',
      ({ refusedInScope }) => refusedInScope,
    ),
    { ...gauge('breaker', BREAKER_HELP, ({ breaker }) => BREAKER[breaker]), aggregator: 'max' },
    gauge(
      'large_bytes',
      'Bytes of large answers that wait for the store or are on their way',
      (all) => all.large.bytes,
    ),
    counter('large_deadline_misses', 'Large answers that missed their deadline', ({ large }) => large.timeouts),
    counter('large_refused', 'Large answers refused by the budget of their application', ({ large }) => large.refused),
    counter('large_dropped', 'Outcomes stored without their large answer', ({ large }) => large.dropped),
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

export function leaseMetrics(stats: () => LeaseStats): ScrapedMetric[] {
  const { counter, gauge } = metricsWith('leases', stats);
  return [
    counter('decisions', 'Decisions from leases, without a call of the store (S32)', ({ decisions }) => decisions),
    counter('leased_units', 'Units charged ahead of requests, or refunded into a lease', ({ leased }) => leased),
    counter('used_units', 'Units of leases that requests took', ({ used }) => used),
    counter(
      'returned_units',
      'Units of leases that went back, or whose windows were over',
      ({ givenBack }) => givenBack,
    ),
    counter('lost_units', 'Units that stay charged until their windows are over', ({ lost }) => lost),
    gauge('held_units', 'Units charged ahead that no request took yet', ({ held }) => held),
    gauge('pairs', 'Pairs of account and route whose requests are watched', ({ pairs }) => pairs),
  ];
}

/** The members of a pool of connections that are measured. */
export interface MeasuredPool {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
}

export function connectionMetrics(pool: MeasuredPool): ScrapedMetric[] {
  const { gauge } = metricsWith('postgres_pool', () => pool);
  return [
    gauge('connections', 'Connections to PostgreSQL that are open', ({ totalCount }) => totalCount),
    gauge('idle', 'Connections to PostgreSQL that run no statement', ({ idleCount }) => idleCount),
    gauge('waiting', 'Statements that wait for a connection to PostgreSQL', ({ waitingCount }) => waitingCount),
  ];
}
