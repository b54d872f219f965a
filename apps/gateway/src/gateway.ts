import type { Server } from 'node:http';
import type { MaybePromise } from 'headgate/stores';
import { createAdminApi } from './admin/admin-api.ts';
import { createAdminServer } from './admin/admin-server.ts';
import { askOwn } from './admin/combined-figures.ts';
import { createConsolePages } from './admin/console-pages.ts';
import type { Figures } from './admin/figures.ts';
import { operationsOf } from './admin/operations/index.ts';
import { createShares } from './admission/shares.ts';
import { WorkBudget } from './admission/work-budget.ts';
import { BufferBudget } from './body/buffer-budget.ts';
import { configChange, type ReloadReport, reloadReport } from './config/config-change.ts';
import { MAX_TIMER_MS } from './config/schema/values.ts';
import type { Config } from './config/schema.ts';
import { hostAndPort, upstreamUrls } from './config/upstreams.ts';
import type { RateLimitServer } from './decisions/rate-limit-server.ts';
import type { ConfigMetrics } from './operations/config-metrics.ts';
import { createHealth } from './operations/health.ts';
import { loadGauges } from './operations/load-gauges.ts';
import type { Log } from './operations/log.ts';
import { createMetrics, type MetricFamily } from './operations/metrics.ts';
import { startTelemetry } from './operations/telemetry.ts';
import { createUpstreamFailures } from './operations/upstream-failures.ts';
import { openParts, type ProcessParts } from './process-parts.ts';
import { createUpstreams } from './proxy/upstreams.ts';
import { listenForEnvoy } from './rate-limit-listener.ts';
import { createRules, type LimitedRules, type RuleParts } from './rules.ts';
import { ADMIN_PLACES, type Address, DECISIONS_PLACES, LISTEN_PLACES, listen } from './server/listen.ts';
import type { Rules } from './server/rules.ts';
import { createGatewayServer } from './server/server.ts';
import type { SilenceLimits } from './server/silence.ts';
import { ListenerTls } from './tls/listener-tls.ts';
import type { Traffic } from './traffic/traffic.ts';

/** The parts of a worker that its primary asks for. */
export interface WorkerParts {
  readonly figures: Figures;
  readonly traffic: Pick<Traffic, 'tapEvents' | 'eventsSince'>;
  setReady(isReady: boolean): void;
}

/** A running gateway. */
export interface Gateway {
  readonly address: Address;
  readonly adminAddress: Address | undefined;
  readonly decisionsAddress: Address | undefined;
  readonly rateLimitServiceAddress: Address | undefined;
  readonly configMetrics: ConfigMetrics;
  /** Undefined if it is a primary. */
  readonly worker: WorkerParts | undefined;
  /** The current metrics. */
  metrics(): Promise<readonly MetricFamily[]>;
  /**
   * Judges requests by this config from the next one on. Running requests keep the rules that they began with. Counters
   * and claims stay. New certificates are used from the next handshake on. If it throws, nothing changes.
   */
  reload(config: Config): MaybePromise<ReloadReport>;
  /**
   * Reports that it is not ready, and serves on for `shutdownDelayMs`. Then it stops accepting, waits at most `drainMs`
   * for running requests, and closes everything. Resolves to how many requests were cut off.
   */
  stop(): Promise<number>;
}

/** A connection on which a request runs may be silent for at least this long. */
const MIN_SILENCE_MS = 300_000;
/** Longest wait for a request of a program or a proxy that asks for a decision. */
const DECISION_REQUEST_MS = 10_000;
type ServingParts = RuleParts & ProcessParts & { readonly buffers: BufferBudget };

const NO_ADMIN = { tokens: [], hosts: [], console: false };

/**
 * Builds a gateway from a config, and listens. For a worker, its primary listens on the `admin` address.
 * @throws ListenError, ConfigError if the file of the adjustments cannot be read
 */
export async function startGateway(config: Config, log: Log, { isWorker = false } = {}): Promise<Gateway> {
  log.configure(config.log);
  // The store's first calls are reported as well.
  const telemetry = startTelemetry();
  const metrics = createMetrics([]);
  const health = createHealth(() => opened.store.health());
  const opened = await openParts(config, { log, metrics, isReady: () => health.isReady });
  const parts = createParts(config, opened);
  const { store, traffic, sharedLimits, idempotency, upstreams } = parts;
  // The first request must be judged by the adjustments, if the store answers.
  await opened.ready();
  telemetry?.watchLimits(() => sharedLimits.state);
  let current = { config, rules: await adoptRules(config, parts) };
  const adminListener = isWorker ? undefined : config.admin;
  const tls = {
    listen: new ListenerTls('listen', config.listen.tls, { log, metrics }),
    admin: new ListenerTls('admin', adminListener?.tls, { log, metrics }),
    decisions: new ListenerTls('decisions', config.decisions?.tls, { log, metrics }),
  };
  const serving = {
    revision: () => sharedLimits.state.revision,
    log,
    metrics,
    traffic,
    verdict: (requestId: string) => parts.shadow.takeVerdict(requestId),
    health,
    maxConnections: config.maxConnections,
    silence: silenceIn(config),
  };
  const main = createGatewayServer({ ...serving, rules: () => current.rules, tls: tls.listen.options });
  const decisions =
    config.decisions &&
    createGatewayServer({
      ...serving,
      // A listener is neither added nor removed by a reload.
      rules: () => current.rules.decisions as Rules,
      tls: tls.decisions.options,
      requestMs: DECISION_REQUEST_MS,
    });
  const servers = decisions === undefined ? [main] : [main, decisions];
  const operations = operationsOf({
    ...parts,
    config: () => current.config,
    limiter: () => current.rules.limiter,
    accounts: () => current.rules.accounts,
    figures: askOwn(parts.figures),
    subscribe: (subscription) => traffic.subscribe(subscription),
    isReady: () => health.isReady,
    setReady(isReady) {
      health.setReady(isReady);
      return undefined;
    },
  });
  const settings = () => current.config.admin ?? NO_ADMIN;
  const api = createAdminApi({ operations, settings, log, metrics });
  const admin =
    adminListener &&
    createAdminServer({ metrics, health, api, console: createConsolePages(settings), tls: tls.admin.options });
  metrics.add(loadGauges({ ...parts, connections: main.connections }));

  const reload = async (wanted: Config): Promise<ReloadReport> => {
    const change = configChange(current.config, wanted);
    const next = change.config;
    if (change.changed.length > 0) {
      current = { config: next, rules: await adoptRules(next, parts) };
      for (const each of servers) each.setSilence(silenceIn(next));
      store.setApplications(next);
      log.configure(next.log);
      traffic.onState({ state: 'reloaded' });
    }
    const kept = [
      ...tls.listen.renew(main.server, next.listen.tls),
      ...(isWorker ? [] : tls.admin.renew(admin, next.admin?.tls)),
      ...tls.decisions.renew(decisions?.server, next.decisions?.tls),
    ];
    return reloadReport(change, kept);
  };
  let rateLimits: RateLimitServer | undefined;
  const close = async (): Promise<void> => {
    rateLimits?.close();
    for (const server of [...servers.map(({ server }) => server), admin]) cut(server);
    // The outcome of a request that is cut off here must be stored before the store closes.
    await upstreams.close();
    await opened.close();
    await telemetry?.close();
  };
  const stop = async (): Promise<number> => {
    health.drain();
    for (const each of servers) each.closeAfterLast();
    const { shutdownDelayMs } = current.config;
    if (shutdownDelayMs > 0) await elapsed(shutdownDelayMs);
    await Promise.race([
      Promise.all([...servers.map((each) => each.drain()), rateLimits?.drain(), idempotency.idle()]),
      elapsed(current.config.drainMs),
    ]);
    const running = servers.reduce((sum, { connections }) => sum + connections.running, 0);
    await close();
    return running;
  };
  try {
    const adminAddress = admin && adminListener && (await listen(admin, adminListener, ADMIN_PLACES));
    const decisionsAddress =
      decisions && config.decisions && (await listen(decisions.server, config.decisions, DECISIONS_PLACES));
    rateLimits =
      config.rateLimitService &&
      (await listenForEnvoy(config.rateLimitService, {
        log,
        metrics,
        decide: () => current.rules.decideRateLimits,
        knows: (domain) => Object.hasOwn(current.config.rateLimitService?.domains ?? {}, domain),
      }));
    const address = await listen(main.server, config.listen, LISTEN_PLACES);
    return {
      address,
      adminAddress,
      decisionsAddress,
      rateLimitServiceAddress: rateLimits?.address,
      configMetrics: metrics.config,
      worker: { figures: parts.figures, traffic, setReady: (isReady) => health.setReady(isReady) },
      metrics: () => metrics.families(),
      reload,
      stop,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Adds the parts of a process that serves requests. */
function createParts(config: Config, opened: ProcessParts): ServingParts {
  const { log, metrics, store } = opened;
  const { perApplication, maxUpstreamConnections } = config;
  const buffers = new BufferBudget({
    maxBytes: config.maxBufferedBytes,
    maxApplicationBytes: perApplication.maxBufferedBytes,
  });
  return {
    ...opened,
    buffers,
    claims: store.claims,
    shares: createShares({ maxRequests: perApplication.maxRequests, buffers }),
    workBudget: new WorkBudget(perApplication.maxRefusedWorkMs),
    upstreams: createUpstreams({
      idleMs: config.upstreamIdleMs,
      maxConnections: maxUpstreamConnections,
      maxPerApplication: perApplication.maxUpstreamConnections ?? Math.ceil(maxUpstreamConnections / 2),
    }),
    onUpstreamFailure: createUpstreamFailures(log, metrics),
  };
}

/** The rules of a config. From now on only connections to its upstreams stay open. */
async function adoptRules(config: Config, parts: ServingParts): Promise<LimitedRules> {
  const rules = createRules(config, parts);
  await parts.adopt(config);
  const urls = [...upstreamUrls(config).values()];
  parts.upstreams.keep(urls);
  const routes = config.routes.map(({ route }) => route);
  const upstreams = urls.map((url) => hostAndPort(new URL(url)));
  parts.metrics.begin(routes, upstreams);
  return rules;
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
