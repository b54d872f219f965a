import { createKeptFile } from 'headgate/file';
import { createRedisAdjustments, createRedisClaimStore, createRedisStore, MIN_BYTES_PER_MS } from 'headgate/redis';
import { routesOf } from '../config/routes.ts';
import { MAX_TIMER_MS } from '../config/schema/values.ts';
import type { Config } from '../config/schema.ts';
import type { RedisUrl } from '../config/store-url.ts';
import type { Log } from '../operations/log.ts';
import { redisClaimMetrics, serverLimitMetrics, storeUp } from '../operations/store-metrics.ts';
import { withAddresses } from './address-store.ts';
import { FleetBoard } from './fleet-board.ts';
import { type GatewayStore, MAX_ADDRESSES, MAX_PAIRS } from './gateway-store.ts';
import { openShadowInMemory } from './memory-store.ts';
import { redisBoard } from './redis-board.ts';
import { answers, connected, createRedisClient } from './redis-client.ts';
import { logFindings, START_MS, serverHealth, storeLog, sumOfStats } from './server-store.ts';

/** Prefix of a candidate's keys. The prefix of all other keys is `headgate`. */
const SHADOW_PREFIX = 'headgate-shadow';
/** Longest silence of Redis while a command waits. On the connection for large answers also the time for the largest. */
const SILENCE_MS = 5_000;

/** Opens stores in Redis. If it is down, that is a warning, not an error. */
export async function openRedis(config: Config, url: RedisUrl, log: Log): Promise<GatewayStore> {
  const { onError, logger } = storeLog(log, (fields) => log.logger.warn(fields, 'redis error'));
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
  const health = serverHealth(limits, claims, () => answers(client, deadlineMs));
  const fleet = new FleetBoard(redisBoard(client), { deadlineMs, refreshMs: config.adjustments.refreshMs });
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
      ...serverLimitMetrics('redis', () => sumOfStats(limits.stats(), addresses.stats())),
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

/** Bytes of the largest answer as it is stored: Base64 takes a third more. */
function largestAnswer(config: Config): number {
  return (4 / 3) * Math.max(0, ...routesOf(config).map(({ idempotent }) => idempotent?.settings.maxKeptBytes ?? 0));
}
