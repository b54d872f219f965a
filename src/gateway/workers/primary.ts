import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Config } from '../config/schema.ts';
import type { Gateway } from '../gateway.ts';
import { createAdminServer } from '../operations/admin.ts';
import { createConfigMetrics } from '../operations/config-metrics.ts';
import { createHealth } from '../operations/health.ts';
import type { Log } from '../operations/log.ts';
import { familiesOf } from '../operations/metrics.ts';
import { ADMIN_PLACES, listen } from '../server/listen.ts';
import { WorkerPool } from './pool.ts';
import { sumOf } from './summed-metrics.ts';

/** A worker that stops is killed if it has not ended this long after `shutdownDelayMs` and `drainMs`. */
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
  log.configure(config.log);
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ serialization: 'advanced' });
  const pool = new WorkerPool(config, log);
  const registry = primaryMetrics(pool);
  const configMetrics = createConfigMetrics([registry]);
  const sum = async () => sumOf([await familiesOf(registry), ...(await pool.metrics())]);
  const render = async () => {
    const all = await sum();
    return { contentType: all.contentType, text: await all.metrics() };
  };
  const health = createHealth(async () => (pool.listening > 0 ? 'ok' : 'starting'));
  const admin = config.admin && createAdminServer({ render }, health);
  const adminAddress = admin && config.admin && (await listen(admin, config.admin, ADMIN_PLACES));
  const closeAdmin = (): void => {
    admin?.close();
    admin?.closeAllConnections();
  };
  // If this process ends before its workers, for example at a second signal, nothing may be left.
  process.once('exit', () => pool.kill());
  try {
    const address = await pool.start(workersOf(config));
    return {
      address,
      adminAddress,
      configMetrics,
      metrics: async () => familiesOf(await sum()),
      reload: () => Promise.reject(new Error('workers cannot reload yet')),
      async stop() {
        health.drain();
        const cutOff = await pool.stop(config.shutdownDelayMs + config.drainMs + END_MS);
        closeAdmin();
        return cutOff;
      },
    };
  } catch (error) {
    closeAdmin();
    throw error;
  }
}

function primaryMetrics(pool: WorkerPool): Registry {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'headgate_workers',
    help: 'Worker processes that listen',
    registers,
    collect() {
      this.set(pool.listening);
    },
  });
  new Counter({
    name: 'headgate_worker_ends_total',
    help: 'Worker processes that ended unexpectedly and were replaced',
    registers,
    collect() {
      this.reset();
      this.inc(pool.unexpectedEnds);
    },
  });
  return registry;
}
