import { parseLimit } from '../../core/limit.ts';
import { createPlan } from '../../core/plan.ts';
import type { ClaimStore, LimitStore } from '../../core/ports.ts';
import { createMemoryClaimStore } from '../../stores/memory/claims.ts';
import { createMemoryStore } from '../../stores/memory/limits.ts';
import { createRedisClaimStore } from '../../stores/redis/claims.ts';
import { createRedisStore } from '../../stores/redis/limits.ts';
import type { Config } from '../config/schema.ts';
import { parseStoreUrl } from '../config/store-url.ts';
import { examine } from '../operations/doctor.ts';
import type { Log } from '../operations/log.ts';
import {
  memoryClaimFigures,
  memoryFigures,
  redisClaimFigures,
  redisFigures,
  type StoreFigure,
} from '../operations/store-figures.ts';
import { answers, connected, createRedisClient, type RedisUrl } from './redis-client.ts';

/** Where the process keeps its counters and claims. */
export interface OpenStore {
  readonly limits: LimitStore;
  /** Of idempotency keys. In memory they have a bound of their own. */
  readonly claims: ClaimStore;
  readonly figures: readonly StoreFigure[];
  /** `degraded` while the store is away and the failure policy answers. Within `storeDeadlineMs`. */
  health(): Promise<'ok' | 'degraded'>;
  close(): void;
}

/** Longest wait for Redis at the start. After it the gateway serves degraded, and recovers. */
const START_MS = 2_000;
/** What is asked where nothing but the answer is wanted: no config can name such an account. */
const HEALTH = 'GET /healthz';
const PROBE = createPlan([], parseLimit(['1/1s']));
/** At most one line a second says that Redis fails. */
const LOG_EVERY_MS = 1_000;

/** Opens what `store` names. A Redis that is away is a warning, never a fault. */
export async function openStore(config: Config, log: Log): Promise<OpenStore> {
  const url = parseStoreUrl(config.store) ?? { kind: 'memory' };
  return url.kind === 'memory' ? openMemory(config) : openRedis(config, url, log);
}

function openMemory(config: Config): OpenStore {
  const limits = createMemoryStore({ maxKeys: keysNeeded(config) });
  const claims = createMemoryClaimStore();
  const figures = [...memoryFigures(() => limits.stats()), ...memoryClaimFigures(() => claims.stats())];
  return { limits, claims, figures, health: async () => 'ok', close() {} };
}

async function openRedis(config: Config, url: RedisUrl, log: Log): Promise<OpenStore> {
  const warn = seldom((error: unknown) => log.logger.warn({ err: error }, 'redis fails'));
  const client = createRedisClient(url, warn);
  const { storeDeadlineMs: deadlineMs, onStoreFailure } = config;
  const limits = createRedisStore(client, {
    deadlineMs,
    onStoreFailure,
    onError: warn,
    localMaxKeys: keysNeeded(config),
  });
  const claims = createRedisClaimStore(client, { deadlineMs, onError: warn });
  if (await connected(client, START_MS)) void warnOf(config, log);
  else log.logger.warn({ onStoreFailure }, 'redis is not there yet: serving degraded until it is');
  return {
    limits,
    claims,
    figures: [...redisFigures(() => limits.stats()), ...redisClaimFigures(() => claims.stats())],
    health: async () => {
      const isWell = () => limits.stats().breaker === 'closed' && claims.stats().breaker === 'closed';
      if (!(await answers(client, deadlineMs))) return 'degraded';
      // A breaker closes when something was asked and answered: without traffic nobody else would ask.
      if (!isWell())
        await Promise.allSettled([limits.peek('', HEALTH, PROBE), claims.inspect({ scope: '', key: HEALTH })]);
      return isWell() ? 'ok' : 'degraded';
    },
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

/** Only accounts and routes of the config ever reach the store: with room for all of them, and for what an account's routes share, it is never full (S18). */
function keysNeeded({ accounts, routes }: Config): number {
  const limited = routes.filter(({ account }) => account !== undefined).length;
  return Math.min(16_000_000, Math.max(1, accounts.length * (limited + 1)));
}
