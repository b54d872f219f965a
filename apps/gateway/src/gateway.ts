import type { Server } from 'node:http';
import { hostname } from 'node:os';
import { createIdempotency } from 'headgate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import type { MaybePromise } from 'headgate/stores';
import { createAdminApi } from './admin/admin-api.ts';
import { createAdminServer } from './admin/admin-server.ts';
import { createConsolePages } from './admin/console-pages.ts';
import { operationsOf } from './admin/operations/index.ts';
import { createShares } from './admission/shares.ts';
import { WorkBudget } from './admission/work-budget.ts';
import { BufferBudget } from './body/buffer-budget.ts';
import { configChange, type ReloadReport, reloadReport } from './config/config-change.ts';
import { limitsOf } from './config/limits.ts';
import { settingsIn } from './config/routes.ts';
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
import { version } from './operations/version.ts';
import { createUpstreams } from './proxy/upstreams.ts';
import { listenForEnvoy } from './rate-limit-listener.ts';
import { createRules, type LimitedRules, type RuleParts } from './rules.ts';
import { ADMIN_PLACES, type Address, DECISIONS_PLACES, LISTEN_PLACES, listen } from './server/listen.ts';
import type { Rules } from './server/rules.ts';
import { createGatewayServer } from './server/server.ts';
import type { SilenceLimits } from './server/silence.ts';
import { ShadowRunner } from './shadow/shadow-runner.ts';
import { createAdjustedLimits } from './store/adjusted-limits.ts';
import type { GatewayStore } from './store/gateway-store.ts';
import { openStore } from './store/store.ts';
import { ListenerTls } from './tls/listener-tls.ts';
import { type ProcessDetails, TOP, writeDetails } from './traffic/process-details.ts';
import { Traffic } from './traffic/traffic.ts';

/** A running gateway. */
export interface Gateway {
  readonly address: Address;
  readonly adminAddress: Address | undefined;
  readonly decisionsAddress: Address | undefined;
  readonly rateLimitServiceAddress: Address | undefined;
  readonly configMetrics: ConfigMetrics;
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

/** Longest wait at the start for the adjustments; the first reading may take this many deadlines of the store. */
const READY_MS = 2_000;
const FIRST_READING = 4;
/** Longest wait at the end for the store to acknowledge outcomes. */
const CLOSE_MS = 2_000;
/** A connection on which a request runs may be silent for at least this long. */
const MIN_SILENCE_MS = 300_000;
/** Longest wait for a request of a program or a proxy that asks for a decision. */
const DECISION_REQUEST_MS = 10_000;
const NO_ADMIN = { tokens: [], hosts: [], console: false };

/**
 * Builds a gateway from a config, and listens.
 * @throws ListenError, ConfigError if the file of the adjustments cannot be read
 */
export async function startGateway(config: Config, log: Log): Promise<Gateway> {
  log.configure(config.log);
  // The store's first calls are reported as well.
  const telemetry = startTelemetry();
  const store = await openStore(config, log);
  const health = createHealth(() => store.health());
  const startedAt = new Date();
  const traffic = new Traffic();
  const parts = createParts(config, { store, log, traffic });
  const details = (): ProcessDetails => ({
    version,
    host: hostname(),
    startedAtMs: startedAt.getTime(),
    state: health.isReady ? 'serving' : 'draining',
    breaker: store.breaker(),
    perSecond: traffic.decisionsPerSecond(),
    shadow: parts.shadow.said,
    top: traffic.tops(TOP),
  });
  const { metrics, limits, sharedLimits, idempotency, upstreams } = parts;
  store.fleet?.start(sharedLimits.instance, () => writeDetails(details()));
  // The first request must be judged by the adjustments, if the store answers.
  await sharedLimits.ready({ timeoutMs: Math.min(READY_MS, FIRST_READING * config.storeDeadlineMs) });
  telemetry?.watchLimits(() => sharedLimits.state);
  let current = { config, rules: await adoptRules(config, parts) };
  const tls = {
    listen: new ListenerTls('listen', config.listen.tls, { log, metrics }),
    admin: new ListenerTls('admin', config.admin?.tls, { log, metrics }),
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
    config: () => current.config,
    limiter: () => current.rules.limiter,
    accounts: () => current.rules.accounts,
    sharedLimits,
    shadow: parts.shadow,
    store,
    idempotency,
    traffic,
    health,
    log,
    startedAt,
    details,
  });
  const settings = () => current.config.admin ?? NO_ADMIN;
  const api = createAdminApi({ operations, settings, log, metrics });
  const admin =
    config.admin &&
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
      ...tls.admin.renew(admin, next.admin?.tls),
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
    parts.shadow.close();
    await Promise.all([idempotency.close({ timeoutMs: CLOSE_MS }), sharedLimits.close(), limits.close?.()]);
    store.close();
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
    const adminAddress = admin && config.admin && (await listen(admin, config.admin, ADMIN_PLACES));
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
      metrics: () => metrics.families(),
      reload,
      stop,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The parts that are created before the others. */
interface PartsOptions extends Pick<RuleParts, 'log' | 'traffic'> {
  readonly store: GatewayStore;
}

/** Makes what lasts as long as the process, with the bounds of the config that it starts with. */
function createParts(
  config: Config,
  { store, log, traffic }: PartsOptions,
): RuleParts & { readonly buffers: BufferBudget } {
  const { perApplication, maxUpstreamConnections } = config;
  const adjusted = createAdjustedLimits(config, {
    store,
    log,
    onChange: (change) => traffic.onLimits(change),
  });
  const metrics = createMetrics([...store.metrics, ...adjusted.metrics]);
  const onIdempotency = (event: IdempotencyEvent): void => {
    metrics.onIdempotency(event);
    traffic.onIdempotency(event);
  };
  const buffers = new BufferBudget({
    maxBytes: config.maxBufferedBytes,
    maxApplicationBytes: perApplication.maxBufferedBytes,
  });
  return {
    log,
    metrics,
    traffic,
    shadow: new ShadowRunner(config, { store, log, metrics, traffic }),
    buffers,
    sharedLimits: adjusted.limits,
    limits: log.decisions.numbered(metrics.measured(store.limits, (seconds) => traffic.onStoreCall(seconds))),
    idempotency: createIdempotency({
      ...settingsIn(config.idempotency),
      store: store.claims,
      reconcile: undefined,
      onEvent: onIdempotency,
      // The config is checked separately.
      validate: false,
      logger: (message, err) => log.logger.error({ err }, message),
    }),
    claims: store.claims,
    onIdempotency,
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
async function adoptRules(config: Config, parts: RuleParts): Promise<LimitedRules> {
  parts.traffic.turn((config.admin?.tokens.length ?? 0) > 0);
  const rules = createRules(config, parts);
  await parts.sharedLimits.rebase(limitsOf(config));
  parts.shadow.setConfig(config);
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
