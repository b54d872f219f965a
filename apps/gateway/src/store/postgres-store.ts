import { createKeptFile } from 'headgate/file';
import { createPostgresAdjustments, createPostgresClaimStore, createPostgresStore } from 'headgate/postgres';
import type { Pool } from 'pg';
import { MAX_TIMER_MS } from '../config/schema/values.ts';
import type { Config } from '../config/schema.ts';
import type { PostgresStore } from '../config/store-url.ts';
import type { Log } from '../operations/log.ts';
import { connectionMetrics, postgresClaimMetrics, serverLimitMetrics, storeUp } from '../operations/store-metrics.ts';
import { withAddresses } from './address-store.ts';
import { FleetBoard } from './fleet-board.ts';
import { type GatewayStore, MAX_ADDRESSES, MAX_PAIRS } from './gateway-store.ts';
import { openShadowInMemory } from './memory-store.ts';
import { postgresBoard } from './postgres-board.ts';
import { answersQuery, createPostgresPool } from './postgres-pool.ts';
import { checkSchemas, migrateSchemas, quoted, StoreSetupError, schemasOf } from './postgres-schemas.ts';
import { logFindings, START_MS, serverHealth, storeLog, sumOfStats } from './server-store.ts';

/** Longest silence of PostgreSQL while a statement waits. */
const SILENCE_MS = 5_000;
/** Between two attempts to migrate a server that is away. */
const RETRY_MS = 1_000;

/**
 * Opens stores in PostgreSQL. If the server is down, that is a warning, not an error.
 * @throws StoreSetupError if the server answers, and its database is not set up
 */
export async function openPostgres(config: Config, settings: PostgresStore, log: Log): Promise<GatewayStore> {
  const { onError, logger } = storeLog(log, (fields) => log.logger.warn(fields, 'postgres error'));
  const { storeDeadlineMs: deadlineMs, onStoreFailure, perApplication } = config;
  const silenceMs = Math.min(MAX_TIMER_MS, Math.max(SILENCE_MS, 2 * deadlineMs));
  const pool = createPostgresPool(settings, onError, { silenceMs });
  const [schema, shadowSchema] = schemasOf(settings);
  const setUp = await trySetUp(pool, settings);
  if (setUp instanceof StoreSetupError) {
    await pool.end();
    throw setUp;
  }
  const openLimits = (localMaxKeys: number, log: typeof logger | false) =>
    createPostgresStore(pool, { schema, deadlineMs, onStoreFailure, onError, logger: log, localMaxKeys });
  const limits = openLimits(MAX_PAIRS, logger);
  // The same counters. While PostgreSQL is down, addresses have separate room in memory.
  const addresses = openLimits(MAX_ADDRESSES, false);
  const claims = createPostgresClaimStore(pool, {
    schema,
    deadlineMs,
    onError,
    logger,
    maxClaimsPerScope: perApplication.maxClaims,
    largeValues: { maxBytesPerScope: perApplication.maxLargeBytes },
  });
  let isClosed = false;
  if (setUp === undefined) void logFindings(config, log);
  else {
    log.logger.warn({ err: setUp, onStoreFailure }, 'postgres is unreachable: serving degraded until it answers');
    if (settings.migrate) void migrateLater(pool, settings, log, () => isClosed);
  }
  const health = serverHealth(limits, claims, () => answersQuery(pool, deadlineMs));
  const board = postgresBoard(pool, quoted(schema));
  const fleet = new FleetBoard(board, { deadlineMs, refreshMs: config.adjustments.refreshMs });
  return {
    kind: 'postgres',
    adjustments: createPostgresAdjustments(pool, { schema, deadlineMs, onError, logger: false }),
    keptFile: config.adjustments.file === undefined ? undefined : createKeptFile(config.adjustments.file),
    fleet,
    openShadow: (where) =>
      where === 'memory'
        ? openShadowInMemory()
        : // A failure policy would decide in place of the store, and the failure would stay unnoticed.
          createPostgresStore(pool, { schema: shadowSchema, deadlineMs, onStoreFailure: 'refuse', logger: false }),
    breaker: () => limits.stats().breaker,
    limits: withAddresses(limits, addresses),
    claims,
    metrics: [
      storeUp(health),
      ...serverLimitMetrics('postgres', () => sumOfStats(limits.stats(), addresses.stats())),
      ...postgresClaimMetrics(() => claims.stats()),
      ...connectionMetrics(pool),
    ],
    health,
    // The bound per application is the same in each process, however many applications there are.
    setApplications() {},
    close() {
      isClosed = true;
      fleet.close();
      void pool.end();
    },
  };
}

/** Checks the database, or migrates it first. Returns why that failed: StoreSetupError, or that of the connection. */
async function trySetUp(pool: Pool, settings: PostgresStore): Promise<unknown> {
  try {
    if (settings.migrate) await migrateSchemas(pool, settings);
    await checkSchemas(pool, settings, START_MS);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The server was away at the start, so it may still lack the schema. */
async function migrateLater(
  pool: Pool,
  settings: PostgresStore,
  { logger }: Log,
  isClosed: () => boolean,
): Promise<void> {
  while (!isClosed()) {
    try {
      await migrateSchemas(pool, settings);
      return;
    } catch (err) {
      if (err instanceof StoreSetupError) {
        logger.error({ err }, 'the schema of the store cannot be created or updated');
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
    }
  }
}
