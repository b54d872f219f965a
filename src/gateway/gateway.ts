import type { Server } from 'node:http';
import type { MaybePromise } from '../core/ports.ts';
import { createIdempotency } from '../idempotency/idempotency.ts';
import { createShares } from './admission/shares.ts';
import { WorkBudget } from './admission/work-budget.ts';
import { BufferBudget } from './body/buffer-budget.ts';
import { configChange } from './config/config-change.ts';
import { settingsIn } from './config/routes.ts';
import { type Config, MAX_TIMER_MS } from './config/schema.ts';
import { validityOf } from './config/tls-files.ts';
import { upstreamUrls } from './config/upstreams.ts';
import { createAdminServer } from './operations/admin.ts';
import type { ConfigMetrics } from './operations/config-metrics.ts';
import { createHealth } from './operations/health.ts';
import type { Log } from './operations/log.ts';
import { createMetrics, type MetricFamily, type Metrics } from './operations/metrics.ts';
import { createUpstreamFailures } from './operations/upstream-failures.ts';
import { createUpstreams } from './proxy/upstreams.ts';
import { createRules, type RuleParts } from './rules.ts';
import { ADMIN_PLACES, type Address, LISTEN_PLACES, listen } from './server/listen.ts';
import { createGatewayServer } from './server/server.ts';
import type { SilenceLimits } from './server/silence.ts';
import { openStore } from './store/store.ts';
import { renewTls, type TlsOptions } from './tls/tls-server.ts';

/** A running gateway. */
export interface Gateway {
  readonly address: Address;
  readonly adminAddress: Address | undefined;
  readonly configMetrics: ConfigMetrics;
  /** The metrics of now. */
  metrics(): Promise<readonly MetricFamily[]>;
  /**
   * Judges requests by this config from the next one on. Running requests keep the rules that they began with. Counters
   * and claims stay. New certificates are used from the next handshake on. If it throws, nothing has changed.
   */
  reload(config: Config): MaybePromise<ReloadReport>;
  /**
   * Says that it is not ready, and serves on for `shutdownDelayMs`. Then it stops accepting, waits at most `drainMs` for
   * running requests, and closes everything. Resolves to how many requests were cut off.
   */
  stop(): Promise<number>;
}

/** What a reload has done: keys of the file's top level, or paths such as `listen.tls`. */
export interface ReloadReport {
  /** Keys that have changed. */
  readonly changed: readonly string[];
  /** Keys that stay as they were until a restart. */
  readonly needsRestart: readonly string[];
}

/** Longest wait at the end for the store to acknowledge outcomes. */
const CLOSE_MS = 2_000;
/** A connection on which a request runs may be silent for at least so long. */
const MIN_SILENCE_MS = 300_000;

/**
 * Builds a gateway from a config, and listens.
 * @throws ListenError
 */
export async function startGateway(config: Config, log: Log): Promise<Gateway> {
  log.configure(config.log);
  const store = await openStore(config, log);
  const metrics = createMetrics(store.metrics);
  const limits = metrics.measured(store.limits);
  const idempotency = createIdempotency({
    ...settingsIn(config.idempotency),
    store: store.claims,
    reconcile: undefined,
    onEvent: (event) => metrics.onIdempotency(event),
    logger: (message, err) => log.logger.error({ err }, message),
  });
  metrics.addGauges([
    { name: 'idempotency_in_flight', help: 'Claims held by this process', value: () => idempotency.held },
    {
      name: 'idempotency_background',
      help: 'Store commands that are retried until the store acknowledges them',
      value: () => idempotency.pending,
    },
  ]);
  const { perApplication } = config;
  const upstreams = createUpstreams({
    idleMs: config.upstreamIdleMs,
    maxConnections: config.maxUpstreamConnections,
    maxPerApplication: perApplication.maxUpstreamConnections ?? Math.ceil(config.maxUpstreamConnections / 2),
  });
  metrics.addGauges([
    {
      name: 'upstream_connections_in_use',
      help: 'Connections to upstreams that a request uses',
      value: () => upstreams.connectionsInUse,
    },
    {
      name: 'upstream_waiting',
      help: 'Requests that wait for a connection to their upstream',
      value: () => upstreams.waiting,
    },
  ]);
  const buffers = new BufferBudget({
    maxBytes: config.maxBufferedBytes,
    maxApplicationBytes: perApplication.maxBufferedBytes,
  });
  const parts: RuleParts = {
    log,
    metrics,
    limits,
    idempotency,
    shares: createShares({ maxRequests: perApplication.maxRequests, buffers }),
    workBudget: new WorkBudget(perApplication.maxRefusedWorkMs),
    upstreams,
    onUpstreamFailure: createUpstreamFailures(log, metrics),
  };
  const health = createHealth(() => store.health());
  let current = config;
  let rules = createRules(config, parts);
  upstreams.keep(upstreamUrls(config).values());
  const main = createGatewayServer({
    rules: () => rules,
    tls: tlsOf('listen', config.listen, log, metrics),
    log,
    metrics,
    health,
    maxConnections: config.maxConnections,
    silence: silenceIn(config),
  });
  metrics.addGauges([
    { name: 'connections', help: 'Connections of clients that are open', value: () => main.connections.open },
    {
      name: 'requests_running',
      help: 'Requests that run, or wait for their turn on their connection',
      value: () => main.connections.running,
    },
    { name: 'buffered_bytes', help: 'Bytes of bodies and answers that are buffered', value: () => buffers.bytes },
  ]);
  const admin =
    config.admin === undefined
      ? undefined
      : createAdminServer(metrics, health, tlsOf('admin', config.admin, log, metrics));
  let tlsInUse = { listen: config.listen.tls, admin: config.admin?.tls };
  /** Returns the paths of the config that need a restart. */
  const renewCertificates = (next: Config): readonly string[] => {
    const given = { listen: next.listen.tls, admin: next.admin?.tls };
    const servers = { listen: main.server, admin };
    return (['listen', 'admin'] as const).flatMap((listener) => {
      const [server, tls] = [servers[listener], given[listener]];
      // A listener that does not exist needs a restart anyway.
      if (server === undefined) return [];
      if (!renewTls(server, tlsInUse[listener], tls)) return [`${listener}.tls`];
      tlsInUse = { ...tlsInUse, [listener]: tls };
      if (tls !== undefined) metrics.onCertificate(listener, validityOf(tls.cert).untilMs);
      return [];
    });
  };
  const close = async (): Promise<void> => {
    for (const server of [main.server, admin]) cut(server);
    // A request that is cut off here still has an outcome, which must be stored before the store closes.
    await upstreams.close();
    await Promise.all([idempotency.close({ timeoutMs: CLOSE_MS }), limits.close?.()]);
    store.close();
  };
  try {
    const adminAddress = admin && config.admin && (await listen(admin, config.admin, ADMIN_PLACES));
    const address = await listen(main.server, config.listen, LISTEN_PLACES);
    return {
      address,
      adminAddress,
      configMetrics: metrics.config,
      metrics: () => metrics.families(),
      reload(wanted) {
        const { config: next, changed, needsRestart } = configChange(current, wanted);
        if (changed.length > 0) {
          rules = createRules(next, parts);
          upstreams.keep(upstreamUrls(next).values());
          current = next;
          main.setSilence(silenceIn(next));
          store.setApplications(next);
          log.configure(next.log);
        }
        const kept = renewCertificates(next);
        return { changed: changed.filter((path) => !kept.includes(path)), needsRestart: [...needsRestart, ...kept] };
      },
      async stop() {
        health.drain();
        main.closeAfterLast();
        if (current.shutdownDelayMs > 0) await elapsed(current.shutdownDelayMs);
        await Promise.race([Promise.all([main.drain(), idempotency.idle()]), elapsed(current.drainMs)]);
        const { running } = main.connections;
        await close();
        return running;
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** TLS of a listener, if the config has it. */
export function tlsOf(
  listener: 'listen' | 'admin',
  { tls }: Config['listen'],
  log: Log,
  metrics: Metrics,
): TlsOptions | undefined {
  if (tls === undefined) return undefined;
  metrics.onCertificate(listener, validityOf(tls.cert).untilMs);
  return {
    material: tls,
    onFailure: ({ cause, isDeparture }) =>
      log.logger[isDeparture ? 'debug' : 'info']({ listener, cause }, 'TLS handshake failed'),
  };
}

function silenceIn({ clientTimeoutMs, upstreamTimeoutMs }: Config): SilenceLimits {
  const silenceMs = Math.max(MIN_SILENCE_MS, upstreamTimeoutMs + 60_000, clientTimeoutMs + 60_000);
  return { clientTimeoutMs, silenceMs: Math.min(MAX_TIMER_MS, silenceMs) };
}

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

function cut(server: Server | undefined): void {
  server?.close();
  server?.closeAllConnections();
}
