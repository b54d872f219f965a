import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import type { Config } from '../config/schema.ts';
import type { Gateway } from '../gateway.ts';
import { createAdminServer } from '../operations/admin.ts';
import type { Log } from '../operations/log.ts';
import { createMetrics, familiesOf, type Metrics } from '../operations/metrics.ts';
import type { ScrapedMetric } from '../operations/store-metrics.ts';
import { ADMIN_PLACES, listen } from '../server/listen.ts';
import { WorkerPool } from './pool.ts';
import { sumOf } from './summed-metrics.ts';

/** A worker that drains is killed if it has not ended this long after `drainMs`. */
const END_MS = 7_000;

/** How many processes serve. With 1 there is no primary. */
export function workersOf({ workers }: Config): number {
  return workers === 'auto' ? availableParallelism() : workers;
}

/**
 * Starts worker processes, each with a gateway. This process distributes the connections, serves the metrics of all, and
 * replaces a worker that ends. It serves no request itself.
 * @throws ListenError, or an Error if a worker cannot start
 */
export async function startWorkers(config: Config, log: Log): Promise<Gateway> {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ serialization: 'advanced' });
  const pool = new WorkerPool(config, log);
  const metrics = metricsOf(pool);
  const admin = config.admin && createAdminServer(metrics);
  const adminAddress = admin && config.admin && (await listen(admin, config.admin, ADMIN_PLACES));
  const closeAdmin = (): void => {
    admin?.close();
    admin?.closeAllConnections();
  };
  const releaseSignals = postponeSignals();
  // If this process ends before its workers, for example at a second signal, none of them may be left.
  process.once('exit', () => pool.kill());
  try {
    return {
      address: await pool.start(workersOf(config)),
      adminAddress,
      metrics,
      async stop() {
        const cutOff = await pool.stop(config.drainMs + END_MS);
        closeAdmin();
        return cutOff;
      },
    };
  } catch (error) {
    closeAdmin();
    throw error;
  } finally {
    // The caller listens for signals as soon as this returns.
    setImmediate(releaseSignals);
  }
}

/** The first workers serve while the others still start. A signal that arrives then is sent again when all have started. */
function postponeSignals(): () => void {
  let first: NodeJS.Signals | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (first !== undefined) process.exit(1);
    first = signal;
  };
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal);
  return () => {
    process.off('SIGTERM', onSignal).off('SIGINT', onSignal);
    if (first !== undefined) process.kill(process.pid, first);
  };
}

/** What only the primary knows. */
export function poolMetrics(pool: Pick<WorkerPool, 'listening' | 'unexpectedEnds'>): ScrapedMetric[] {
  return [
    { type: 'gauge', name: 'workers', help: 'Worker processes that listen', value: () => pool.listening },
    {
      type: 'counter',
      name: 'worker_ends_total',
      help: 'Worker processes that ended unexpectedly, and were replaced',
      value: () => pool.unexpectedEnds,
    },
  ];
}

/** The metrics of this process and of all workers, added up. */
function metricsOf(pool: WorkerPool): Metrics {
  const own = createMetrics(poolMetrics(pool));
  const sum = async () => sumOf([await own.families(), ...(await pool.metrics())]);
  return {
    ...own,
    families: async () => familiesOf(await sum()),
    async render() {
      const all = await sum();
      return { contentType: all.contentType, text: await all.metrics() };
    },
  };
}
