import type { Leases } from 'headgate/limits';
import type { PostgresClaimStore } from 'headgate/postgres';
import type { Pool } from './db/database.ts';
import type { Instances } from './journal/instances.ts';
import type { LimitStore } from './limits/limiter.ts';
import type { DatabaseFigures } from './observability/figures.ts';
import { claimStoreMetrics, gauge, leaseMetrics, limitStoreMetrics } from './observability/store-metrics.ts';
import type { Rooms } from './rooms.ts';

/** How long a scrape waits for the database. */
const FIGURES_MS = 2_000;

export interface MetricSources {
  readonly rooms: Rooms;
  readonly instances: Instances;
  readonly limitStore: LimitStore;
  /** Undefined: each decision is a call of the store. */
  readonly leases: Leases | undefined;
  readonly claimStore: PostgresClaimStore;
  /** Undefined: the database is embedded. */
  readonly pool: Pool | undefined;
}

/** Adds the figures that the metrics do not count themselves. */
export function addSources({ rooms, instances, limitStore, leases, claimStore, pool }: MetricSources): void {
  const { metrics, sends, queue, spool, config, idempotency } = rooms;
  metrics.addRead([
    gauge('communication_api_sends_running', 'Sends that run in this process', () => idempotency.held),
    gauge('communication_api_spool_bytes', 'Disk space that attachments use now', () => spool.usedBytes),
    gauge('communication_api_spool_max_bytes', 'Most disk space for attachments', () => config.SPOOL_MAX_BYTES),
    gauge('headgate_idempotency_in_flight', 'Claims that this process owns', () => idempotency.held),
    gauge('headgate_idempotency_background', 'Commands that are retried until acknowledged', () => idempotency.pending),
    ...limitStoreMetrics(config.REDIS_URL === undefined ? 'postgres' : 'redis', () => limitStore.stats()),
    ...(leases === undefined ? [] : leaseMetrics(() => leases.stats())),
    ...claimStoreMetrics(() => claimStore.stats()),
    ...(pool === undefined ? [] : poolMetrics(pool)),
  ]);
  metrics.addDatabase(() => inTime(readFigures()));

  async function readFigures(): Promise<DatabaseFigures> {
    const [journal, jobs, alive] = await Promise.all([sends.records.pending(), queue.backlogs(), instances.alive()]);
    const roles = [...new Set(alive.map(({ role }) => role))];
    return {
      journal: journal.map(({ oldestMs, ...row }) => ({ ...row, oldestSeconds: oldestMs / 1_000 })),
      jobs: jobs.map(({ overdueMs, ...row }) => ({ ...row, overdueSeconds: overdueMs / 1_000 })),
      processes: roles.map((role) => ({ role, processes: alive.filter((each) => each.role === role).length })),
    };
  }
}

const poolMetrics = (pool: Pool) => [
  gauge('communication_api_database_connections', 'Connections to the database', () => pool.totalCount),
  gauge('communication_api_database_idle_connections', 'Connections that no caller uses', () => pool.idleCount),
  gauge('communication_api_database_waiting', 'Callers that wait for a connection', () => pool.waitingCount),
  gauge('communication_api_database_max_connections', 'Most connections of this process', () => pool.options.max),
];

async function inTime<Result>(work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('The database did not answer in time.')), FIGURES_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
