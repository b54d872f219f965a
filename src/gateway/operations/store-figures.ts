import type { MemoryClaimStoreStats } from '../../stores/memory/claims.ts';
import type { MemoryStoreStats } from '../../stores/memory/limits.ts';
import type { RedisClaimStoreStats } from '../../stores/redis/claims.ts';
import type { RedisStoreStats } from '../../stores/redis/limits.ts';

/** A figure of a store for `/metrics`. */
export interface StoreFigure {
  readonly name: string;
  readonly help: string;
  value(): number;
}

type Make<Stats> = (name: string, help: string, read: (stats: Stats) => number) => StoreFigure;

function figuresOf<Stats>(prefix: string, stats: () => Stats): Make<Stats> {
  return (name, help, read) => ({ name: `${prefix}_${name}`, help, value: () => read(stats()) });
}

export function memoryFigures(stats: () => MemoryStoreStats): StoreFigure[] {
  const figure = figuresOf('memory_store', stats);
  return [
    figure('keys', 'Pairs of account and route that are kept', ({ keys }) => keys),
    figure('max_keys', 'Most pairs that are kept', ({ maxKeys }) => maxKeys),
    figure('refused', 'Decisions refused since every kept pair has an active window (S18)', ({ refused }) => refused),
    figure('swept', 'Pairs that were forgotten after their windows were over', ({ swept }) => swept),
  ];
}

export function memoryClaimFigures(stats: () => MemoryClaimStoreStats): StoreFigure[] {
  const figure = figuresOf('memory_claims', stats);
  return [
    figure('keys', 'Idempotency keys that are kept', ({ keys }) => keys),
    figure('max_keys', 'Most idempotency keys that are kept', ({ maxKeys }) => maxKeys),
    figure('bytes', 'Bytes of kept answers', ({ bytes }) => bytes),
    figure('max_bytes', 'Most bytes of kept answers', ({ maxBytes }) => maxBytes),
    figure('refused', 'Requests refused since every kept key is within its retention', ({ refused }) => refused),
    figure('dropped', 'Answers dropped for want of room: their retries get 409', ({ dropped }) => dropped),
    figure('swept', 'Keys that were forgotten after their retention', ({ swept }) => swept),
  ];
}

const BREAKER = { closed: 0, 'half-open': 1, open: 2 } as const;
const BREAKER_HELP = '0 closed, 1 trying again, 2 open: Redis is taken for away';

export function redisFigures(stats: () => RedisStoreStats): StoreFigure[] {
  const figure = figuresOf('redis_store', stats);
  return [
    figure('calls', 'Scripts sent', ({ calls }) => calls),
    figure('coalesced_checks', 'Checks that travelled with another', ({ coalesced }) => coalesced),
    figure('local_rejections', 'Certain rejections that were not asked again (S20)', (all) => all.localRejections),
    figure('deadline_misses', 'Calls given up at their deadline', ({ timeouts }) => timeouts),
    figure('late_answers', 'Calls given up that landed after all', ({ late }) => late),
    figure('degraded_decisions', 'Decisions of the failure policy (S17)', ({ degraded }) => degraded),
    figure('breaker', BREAKER_HELP, ({ breaker }) => BREAKER[breaker]),
  ];
}

export function redisClaimFigures(stats: () => RedisClaimStoreStats): StoreFigure[] {
  const figure = figuresOf('redis_claims', stats);
  return [
    figure('calls', 'Commands sent about idempotency keys', ({ calls }) => calls),
    figure('deadline_misses', 'Commands given up at their deadline', ({ timeouts }) => timeouts),
    figure('late_answers', 'Commands given up that landed after all', ({ late }) => late),
    figure('breaker', BREAKER_HELP, ({ breaker }) => BREAKER[breaker]),
  ];
}
