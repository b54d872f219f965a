import type { LimitStore } from '../core/ports.ts';
import { createMemoryStore, type MemoryStoreStats } from '../stores/memory/store.ts';
import { createRedisStore, type RedisStoreStats } from '../stores/redis/store.ts';
import { examine } from './doctor.ts';
import type { Log } from './log.ts';
import { answers, connected, createRedisClient, type RedisUrl } from './redis-client.ts';
import type { Config } from './schema.ts';
import { parseStoreUrl } from './store-url.ts';

/** A figure of the store for `/metrics`. */
export interface StoreFigure {
  readonly name: string;
  readonly help: string;
  value(): number;
}

/** Where the process keeps its counters. */
export interface OpenStore {
  readonly limits: LimitStore;
  readonly figures: readonly StoreFigure[];
  /** `degraded` while the store is away and the failure policy answers. Within `storeDeadlineMs`. */
  health(): Promise<'ok' | 'degraded'>;
  close(): void;
}

/** Longest wait for Redis at the start. After it the gateway serves degraded, and recovers. */
const START_MS = 2_000;
/** At most one line a second says that Redis fails. */
const LOG_EVERY_MS = 1_000;

/** Opens what `store` names. A Redis that is away is a warning, never a fault. */
export async function openStore(config: Config, log: Log): Promise<OpenStore> {
  const url = parseStoreUrl(config.store) ?? { kind: 'memory' };
  return url.kind === 'memory' ? openMemory(config) : openRedis(config, url, log);
}

function openMemory(config: Config): OpenStore {
  const store = createMemoryStore({ maxKeys: keysNeeded(config) });
  return { limits: store, figures: memoryFigures(() => store.stats()), health: async () => 'ok', close() {} };
}

async function openRedis(config: Config, url: RedisUrl, log: Log): Promise<OpenStore> {
  const warn = seldom((error: unknown) => log.logger.warn({ err: error }, 'redis fails'));
  const client = createRedisClient(url, warn);
  const { storeDeadlineMs: deadlineMs, onStoreFailure } = config;
  const store = createRedisStore(client, {
    deadlineMs,
    onStoreFailure,
    onError: warn,
    localMaxKeys: keysNeeded(config),
  });
  if (await connected(client, START_MS)) void warnOf(config, log);
  else log.logger.warn({ onStoreFailure }, 'redis is not there yet: serving degraded until it is');
  return {
    limits: store,
    figures: redisFigures(() => store.stats()),
    health: async () => ((await answers(client, deadlineMs)) && store.stats().breaker === 'closed' ? 'ok' : 'degraded'),
    close: () => client.disconnect(),
  };
}

/** What the doctor does not like about the store, in the log. Serving does not wait for it. */
async function warnOf(config: Config, log: Log): Promise<void> {
  for (const { verdict, subject, text } of await examine(config)) {
    if (verdict !== 'ok') log.logger.warn({ subject, verdict }, `store: ${text}`);
  }
}

function seldom(say: (error: unknown) => void): (error: unknown) => void {
  let next = 0;
  return (error) => {
    if (performance.now() < next) return;
    next = performance.now() + LOG_EVERY_MS;
    say(error);
  };
}

/** Only accounts and routes of the config ever reach the store: with room for all of them it is never full (S18). */
function keysNeeded({ accounts, routes }: Config): number {
  const limited = routes.filter(({ account }) => account !== undefined).length;
  return Math.min(16_000_000, Math.max(1, accounts.length * limited));
}

function memoryFigures(stats: () => MemoryStoreStats): StoreFigure[] {
  const figure = (name: string, help: string, read: (stats: MemoryStoreStats) => number): StoreFigure => {
    return { name: `memory_store_${name}`, help, value: () => read(stats()) };
  };
  return [
    figure('keys', 'Pairs of account and route that are kept', ({ keys }) => keys),
    figure('max_keys', 'Most pairs that are kept', ({ maxKeys }) => maxKeys),
    figure('refused', 'Decisions refused since every kept pair has an active window (S18)', ({ refused }) => refused),
    figure('swept', 'Pairs that were forgotten after their windows were over', ({ swept }) => swept),
  ];
}

const BREAKER = { closed: 0, 'half-open': 1, open: 2 } as const;

function redisFigures(stats: () => RedisStoreStats): StoreFigure[] {
  const figure = (name: string, help: string, read: (stats: RedisStoreStats) => number): StoreFigure => {
    return { name: `redis_store_${name}`, help, value: () => read(stats()) };
  };
  return [
    figure('calls', 'Scripts sent', ({ calls }) => calls),
    figure('coalesced_checks', 'Checks that travelled with another', ({ coalesced }) => coalesced),
    figure('local_rejections', 'Certain rejections that were not asked again (S20)', (all) => all.localRejections),
    figure('deadline_misses', 'Calls given up at their deadline', ({ timeouts }) => timeouts),
    figure('late_answers', 'Calls given up that landed after all', ({ late }) => late),
    figure('degraded_decisions', 'Decisions of the failure policy (S17)', ({ degraded }) => degraded),
    figure('breaker', '0 closed, 1 trying again, 2 open: Redis is taken for away', ({ breaker }) => BREAKER[breaker]),
  ];
}
