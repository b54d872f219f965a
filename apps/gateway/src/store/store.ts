import type { StoreUnavailableError } from 'headgate';
import { parseLimit } from 'headgate';
import type { KeptFile } from 'headgate/file';
import { createFileAdjustments, createKeptFile } from 'headgate/file';
import {
  createMemoryAdjustments,
  createMemoryClaimStore,
  createMemoryStore,
  type MemoryClaimStoreOptions,
} from 'headgate/memory';
import {
  createRedisAdjustments,
  createRedisClaimStore,
  createRedisStore,
  MIN_BYTES_PER_MS,
  type RedisStoreStats,
} from 'headgate/redis';
import type { AdjustmentStore, ClaimStore, LimitStore } from 'headgate/stores';
import { createWindowSet } from 'headgate/stores';
import { createErrorLog } from '../base/error-log.ts';
import { ConfigError } from '../config/config-error.ts';
import { routesOf } from '../config/routes.ts';
import { MAX_TIMER_MS } from '../config/schema/values.ts';
import type { Config } from '../config/schema.ts';
import { parseStoreUrl, type RedisUrl } from '../config/store-url.ts';
import type { Log } from '../operations/log.ts';
import {
  memoryClaimMetrics,
  memoryLimitMetrics,
  redisClaimMetrics,
  redisLimitMetrics,
  type ScrapedMetric,
  storeUp,
} from '../operations/store-metrics.ts';
import { withAddresses } from './address-store.ts';
import { examineStore } from './doctor.ts';
import { FleetBoard } from './fleet-board.ts';
import { answers, connected, createRedisClient } from './redis-client.ts';

/** Stores the counters and claims of the process. */
export interface GatewayStore {
  readonly kind: 'memory' | 'redis' | 'redis-cluster';
  /** Limits that operators adjusted. Its failures are failures of the other stores too, which are logged. */
  readonly adjustments: AdjustmentStore;
  /**
   * A file copy of the adjustments that this process knows. Undefined if no file is configured, or if the file is the
   * only store of the adjustments.
   */
  readonly keptFile: KeptFile | undefined;
  /** Data that the gateways with the same store exchange; undefined if only this process could read it. */
  readonly fleet: FleetBoard | undefined;
  /** Opens the store of a candidate's counters: in memory, or under separate keys beside the keys of `limits`. */
  openShadow(where: 'same' | 'memory'): LimitStore;
  /** Whether commands are sent. A store in memory needs no circuit breaker. */
  breaker(): 'closed' | 'open' | 'half-open';
  readonly limits: LimitStore;
  /** Claims of idempotency keys. In memory their bound is separate. */
  readonly claims: ClaimStore;
  readonly metrics: readonly ScrapedMetric[];
  /** Resolves within `storeDeadlineMs`, to `degraded` while the store is down and the failure policy answers. */
  health(): Promise<'ok' | 'degraded'>;
  /** Shares the room for claims anew, among the applications of another config. */
  setApplications(config: Config): void;
  close(): void;
}

/** Longest wait for Redis at start. After it the gateway serves degraded, and recovers. */
const START_MS = 2_000;
/** Prefix of a candidate's keys. The prefix of all other keys is `headgate`. */
const SHADOW_PREFIX = 'headgate-shadow';
/** Route and plan of a call that only tests the store. Its account is empty, which no account of a config can be. */
const HEALTH = 'GET /healthz';
const PROBE = createWindowSet([], parseLimit(['1/1s']));
/**
 * Most pairs of account and route in memory: the most that a store supports. Only accounts and routes of the config
 * reach the store, so the config bounds them. A reload adds to them, and must never find the store full (S18).
 */
const MAX_PAIRS = 16_000_000;
/** Most pairs of address and route in memory: about 150 MB. Clients choose their addresses. */
const MAX_ADDRESSES = 1_000_000;
/** Most idempotency keys in memory, and the least share of one application if the others use few. */
const MAX_CLAIMS = 100_000;
const MIN_SHARE = 10_000;
/** Longest silence of Redis while a command waits. On the connection for large answers also the time for the largest. */
const SILENCE_MS = 5_000;

/**
 * Opens the store of the config. If Redis is down, that is a warning, not an error.
 * @throws ConfigError if the file of the adjustments cannot be read
 */
export async function openStore(config: Config, log: Log): Promise<GatewayStore> {
  const url = parseStoreUrl(config.store) ?? { kind: 'memory' };
  return url.kind === 'memory' ? openMemory(config) : openRedis(config, url, log);
}

async function openMemory(config: Config): Promise<GatewayStore> {
  const limits = createMemoryStore({ maxKeys: MAX_PAIRS });
  const addresses = createMemoryStore({ maxKeys: MAX_ADDRESSES });
  const claims = createMemoryClaimStore(claimBounds(config));
  const health = async () => 'ok' as const;
  const metrics = [
    storeUp(health),
    ...memoryLimitMetrics(() => limits.stats()),
    ...memoryLimitMetrics(() => addresses.stats(), 'memory_addresses'),
    ...memoryClaimMetrics(() => claims.stats()),
  ];
  const setApplications = (next: Config): void => claims.setShares(claimBounds(next));
  return {
    kind: 'memory',
    adjustments: await openAdjustments(config.adjustments.file),
    keptFile: undefined,
    fleet: undefined,
    openShadow: openShadowInMemory,
    breaker: () => 'closed',
    limits: withAddresses(limits, addresses),
    claims,
    metrics,
    setApplications,
    health,
    close() {},
  };
}

/**
 * @throws ConfigError if the file cannot be read: by the config alone, more requests might pass than an operator
 *   allowed
 */
async function openAdjustments(file: string | undefined): Promise<AdjustmentStore> {
  if (file === undefined) return createMemoryAdjustments();
  const adjustments = createFileAdjustments(file);
  try {
    await adjustments.read(undefined);
  } catch (error) {
    const { cause } = error as StoreUnavailableError;
    throw new ConfigError(file, [{ path: 'adjustments.file', reason: (cause as Error).message }]);
  }
  return adjustments;
}

async function openRedis(config: Config, url: RedisUrl, log: Log): Promise<GatewayStore> {
  const onError = createErrorLog((fields) => log.logger.warn(fields, 'redis error'));
  const logger = (message: string, err: unknown): void =>
    err === undefined ? log.logger.info(message) : log.logger.warn({ err }, message);
  const silenceMs = Math.min(MAX_TIMER_MS, Math.max(SILENCE_MS, 2 * config.storeDeadlineMs));
  const client = createRedisClient(url, onError, { silenceMs });
  // A large answer takes as long as the network needs for it. Nothing else waits for it on a separate connection.
  const largeClient = createRedisClient(url, onError, {
    silenceMs: Math.min(MAX_TIMER_MS, silenceMs + Math.ceil(largestAnswer(config) / MIN_BYTES_PER_MS)),
  });
  const { storeDeadlineMs: deadlineMs, onStoreFailure, perApplication } = config;
  const { maxClaims: maxClaimsPerScope, maxLargeBytes: maxBytesPerScope } = perApplication;
  const openLimits = (localMaxKeys: number, log: typeof logger | false) =>
    createRedisStore(client, { deadlineMs, onStoreFailure, onError, logger: log, localMaxKeys });
  const limits = openLimits(MAX_PAIRS, logger);
  // The same counters. While Redis is down, addresses have separate room in memory.
  const addresses = openLimits(MAX_ADDRESSES, false);
  const claims = createRedisClaimStore(client, {
    deadlineMs,
    onError,
    logger,
    maxClaimsPerScope,
    largeValues: { client: largeClient, maxBytesPerScope },
  });
  const [isConnected] = await Promise.all([connected(client, START_MS), connected(largeClient, START_MS)]);
  // Loads the scripts, so that the first requests need not. Without a connection the wait would be in vain.
  if (isConnected) await Promise.allSettled([limits, claims].map((store) => store.ready({ timeoutMs: deadlineMs })));
  if (isConnected) void logFindings(config, log);
  else log.logger.warn({ onStoreFailure }, 'redis is unreachable: serving degraded until it answers');
  const health = async (): Promise<'ok' | 'degraded'> => {
    const isWell = () => limits.stats().breaker === 'closed' && claims.stats().breaker === 'closed';
    if (!(await answers(client, deadlineMs))) return 'degraded';
    // A circuit breaker closes only after a call succeeds. If there is no traffic, the health check must make that
    // call.
    if (!isWell())
      await Promise.allSettled([limits.peek('', HEALTH, PROBE), claims.inspect({ scope: '', key: HEALTH })]);
    return isWell() ? 'ok' : 'degraded';
  };
  const fleet = new FleetBoard(client, { deadlineMs, refreshMs: config.adjustments.refreshMs });
  return {
    kind: url.kind,
    adjustments: createRedisAdjustments(client, { deadlineMs, onError, logger: false }),
    keptFile: config.adjustments.file === undefined ? undefined : createKeptFile(config.adjustments.file),
    fleet,
    openShadow: (where) =>
      where === 'memory'
        ? openShadowInMemory()
        : // A failure policy would decide in place of the store, and the failure would stay unnoticed.
          createRedisStore(client, { prefix: SHADOW_PREFIX, deadlineMs, onStoreFailure: 'refuse', logger: false }),
    breaker: () => limits.stats().breaker,
    limits: withAddresses(limits, addresses),
    claims,
    metrics: [
      storeUp(health),
      ...redisLimitMetrics(() => sumOf(limits.stats(), addresses.stats())),
      ...redisClaimMetrics(() => claims.stats()),
    ],
    health,
    // The bound per application is the same in each process, however many applications there are.
    setApplications() {},
    close() {
      fleet.close();
      client.disconnect();
      largeClient.disconnect();
    },
  };
}

function openShadowInMemory(): LimitStore {
  return withAddresses(createMemoryStore({ maxKeys: MAX_PAIRS }), createMemoryStore({ maxKeys: MAX_ADDRESSES }));
}

/** @param limits with the circuit breaker that counts: that of addresses may wait for a request */
function sumOf(limits: RedisStoreStats, addresses: RedisStoreStats): RedisStoreStats {
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

/** Bytes of the largest answer as it is stored: Base64 takes a third more. */
function largestAnswer(config: Config): number {
  return (4 / 3) * Math.max(0, ...routesOf(config).map(({ idempotent }) => idempotent?.settings.maxKeptBytes ?? 0));
}

/** Logs the doctor's warnings and faults. Serving does not wait for it. */
async function logFindings(config: Config, log: Log): Promise<void> {
  for (const { verdict, subject, text } of await examineStore(config)) {
    if (verdict !== 'ok') log.logger.warn({ subject, verdict }, `store: ${text}`);
  }
}

/** Applications share the room for claims, so that no application can take another's part (I13). */
function claimBounds({ keys, perApplication }: Config): MemoryClaimStoreOptions {
  const applications = Math.max(1, new Set(keys.map(({ application }) => application)).size);
  const share = Math.max(MIN_SHARE, Math.floor(MAX_CLAIMS / applications));
  const { maxClaims = share } = perApplication;
  const maxKeys = Math.max(MAX_CLAIMS, maxClaims);
  // If all of them together may store more than fits, each gets a part that the others cannot take.
  const isScarce = applications * maxClaims > maxKeys;
  const guaranteed = Math.max(1, Math.floor(maxKeys / 2 / applications));
  return { maxKeys, maxClaimsPerScope: maxClaims, minClaimsPerScope: isScarce ? guaranteed : undefined };
}
