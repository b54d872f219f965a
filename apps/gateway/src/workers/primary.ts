import cluster from 'node:cluster';
import type { AdminApi } from '../admin/admin-api.ts';
import { createAdminServer } from '../admin/admin-server.ts';
import { createConsolePages } from '../admin/console-pages.ts';
import { configChange, reloadReport } from '../config/config-change.ts';
import type { Config } from '../config/schema.ts';
import { workersOf } from '../config/workers.ts';
import type { Gateway } from '../gateway.ts';
import { createHealth } from '../operations/health.ts';
import type { Log } from '../operations/log.ts';
import { createMetrics, familiesOf } from '../operations/metrics.ts';
import type { ScrapedMetric } from '../operations/store-metrics.ts';
import { ADMIN_PLACES, listen } from '../server/listen.ts';
import { ListenerTls } from '../tls/listener-tls.ts';
import { WorkerPool } from './pool.ts';
import { openPrimaryAdmin, type PrimaryAdmin, settingsOf } from './primary-admin.ts';
import { sumOf } from './summed-metrics.ts';

/**
 * Starts worker processes, each with a gateway. This process distributes the connections, serves the metrics of all and
 * the Admin API, and replaces a worker that ends. It serves no request itself.
 * @throws ListenError, or an Error if a worker cannot start
 */
export async function startWorkers(config: Config, log: Log): Promise<Gateway> {
  log.configure(config.log);
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ serialization: 'advanced' });
  let current = config;
  let opened: PrimaryAdmin | undefined;
  const pool = new WorkerPool(config, log, (events) => opened?.onEvents(events));
  const own = createMetrics(poolMetrics(pool));
  const sum = async () => sumOf([await own.families(), ...(await pool.metrics())]);
  const render = async () => {
    const all = await sum();
    return { contentType: all.contentType, text: await all.metrics() };
  };
  const health = createHealth(async () => (pool.listening > 0 ? 'ok' : 'starting'));
  const tls = new ListenerTls('admin', config.admin?.tls, { log, metrics: own });
  /** The Admin API opens the store when the config names tokens for the first time. */
  const reloadAdmin = async (next: Config): Promise<void> => {
    if (opened !== undefined) await opened.reload(next);
    else if (settingsOf(next).tokens.length > 0)
      opened = await openPrimaryAdmin(next, { log, metrics: own, health, pool });
  };
  const api: AdminApi = {
    get isOn() {
      return opened?.isOn ?? false;
    },
    handle: (request, response) => (opened as PrimaryAdmin).handle(request, response),
  };
  const console = createConsolePages(() => settingsOf(current));
  const admin = config.admin && createAdminServer({ metrics: { render }, health, api, console, tls: tls.options });
  const closeAdmin = async (): Promise<void> => {
    admin?.close();
    admin?.closeAllConnections();
    await opened?.close();
  };
  const releaseSignals = postponeSignals();
  // If this process ends before its workers, for example at a second signal, no worker may be left.
  process.once('exit', () => pool.kill());
  try {
    await reloadAdmin(config);
    const adminAddress = admin && config.admin && (await listen(admin, config.admin, ADMIN_PLACES));
    return {
      address: await pool.start(workersOf(config)),
      adminAddress,
      decisionsAddress: config.decisions,
      rateLimitServiceAddress: config.rateLimitService,
      configMetrics: own.config,
      worker: undefined,
      metrics: async () => familiesOf(await sum()),
      async reload(wanted) {
        const change = configChange(current, wanted);
        const next = change.config;
        const reports = await pool.reload(next);
        // A certificate that cannot be turned on or off now, for example.
        const kept = [...tls.renew(admin, next.admin?.tls), ...reports.flatMap((report) => report.needsRestart)];
        current = next;
        log.configure(next.log);
        if (change.changed.length > 0) await reloadAdmin(next);
        return reloadReport(change, kept);
      },
      async stop() {
        health.drain();
        const cutOff = await pool.stop();
        await closeAdmin();
        return cutOff;
      },
    };
  } catch (error) {
    await closeAdmin();
    throw error;
  } finally {
    // The caller listens for signals as soon as this returns.
    setImmediate(releaseSignals);
  }
}

/**
 * The first workers serve while others still start. A signal that arrives then is sent again when all have been
 * started.
 */
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

/** Metrics that only the primary knows. */
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
