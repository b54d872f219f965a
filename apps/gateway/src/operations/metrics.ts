import { STATUS_CODES } from 'node:http';
import type { Decision } from 'headgate';
import type { GateEvent } from 'headgate/gate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import type { ShadowDecision } from 'headgate/shadow';
import type { LimitStore } from 'headgate/stores';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { getOrCreate } from '../base/get-or-create.ts';
import type { ListenerName } from '../config/tls-files.ts';
import type { Door } from '../exchange/exchange.ts';
import { UPSTREAM_CAUSES, type UpstreamCause } from '../exchange/upstream-failure.ts';
import { FAST, SLOW } from './buckets.ts';
import { type ConfigMetrics, createConfigMetrics } from './config-metrics.ts';
import { FrequentCounter } from './frequent-counter.ts';
import { createIdempotencyMetrics } from './idempotency-metrics.ts';
import { createInFlightMetrics, type InFlightMetrics } from './in-flight-metrics.ts';
import { measuredStore } from './measured-store.ts';
import type { ScrapedMetric } from './store-metrics.ts';
import { version } from './version.ts';

/**
 * The metrics of `/metrics`. No label ever contains an account, a token, or a path that is not a route of the config.
 */
export interface Metrics {
  readonly config: ConfigMetrics;
  readonly inFlight: InFlightMetrics;
  /** The text in Prometheus's format, with its media type. */
  render(): Promise<{ readonly contentType: string; readonly text: string }>;
  /** The same as data, which can be added to the metrics of other processes. */
  families(): Promise<readonly MetricFamily[]>;
  onEvent(event: GateEvent): void;
  /** An address was limited before its request was known. */
  onAddress(decision: Decision): void;
  onIdempotency(event: IdempotencyEvent): void;
  /**
   * Begins the series that alerts use at 0. `rate()` sees the first event of a series only if the series was there before.
   * @param upstreams their hosts and ports
   */
  begin(routes: readonly string[], upstreams: readonly string[]): void;
  /** Adds metrics that are read at every scrape. */
  add(metrics: readonly ScrapedMetric[]): void;
  /** @param route its name in the config; undefined if no route matched */
  onRequest(route: string | undefined, status: number): void;
  /** A charge on a route was refunded by its receipt. */
  onRefund(route: string): void;
  /** A request for a decision was answered. */
  onDoorRequest(door: Door | 'envoy', status: number | string): void;
  /** @param domain of the config, or `unknown` */
  onDescriptor(domain: string, outcome: string): void;
  onUpstream(route: string, seconds: number): void;
  /** @param expiresAtMs when the certificate of a listener expires, in milliseconds since 1970 */
  onCertificate(listener: ListenerName, expiresAtMs: number): void;
  /** @param upstream its host and port */
  onUpstreamFailure(upstream: string, cause: UpstreamCause): void;
  /** @param operation undefined if the Admin API offers no such operation */
  onAdminRequest(operation: string | undefined, status: number): void;
  /** A request for the Admin API carried no valid token. */
  onAdminAuthFailure(): void;
  onShadow(decision: ShadowDecision): void;
  /** A candidate was not asked about a request, or its store did not answer. */
  onShadowMissed(what: 'dropped' | 'failed'): void;
  /** The same store, with the time of its calls measured. `onCall` is also told it, in seconds. */
  measured(store: LimitStore, onCall?: (seconds: number) => void): LimitStore;
}

/** One metric with its values, in prom-client's form, which can be added to another process's metric. */
export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  /** How values of several processes become one: 'sum', 'max', 'min', 'average', 'first' or 'omit'. */
  readonly aggregator: string;
  readonly values: readonly object[];
}

/** All metrics of a registry, read now. */
export async function familiesOf(registry: Registry): Promise<readonly MetricFamily[]> {
  // The declaration of prom-client takes the type for a number.
  return (await registry.getMetricsAsJSON()) as unknown as readonly MetricFamily[];
}

/** Stages at which the gate of the process can fail. */
const STAGES = ['limits', 'idempotency', 'refund'];

/** The client left before its answer; nginx uses the same number. For log and metrics only, never sent. */
export const CLIENT_GONE = 499;

export function createMetrics(storeMetrics: readonly ScrapedMetric[]): Metrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'headgate_build_info',
    help: 'Always 1; the label is the version of headgate',
    labelNames: ['version'],
    aggregator: 'max',
    registers,
  }).set({ version }, 1);
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name: `headgate_${name}`, help, labelNames, registers });
  const frequent = (name: string, help: string, ...labelNames: string[]) =>
    new FrequentCounter({ name: `headgate_${name}`, help, labelNames, registers });
  const decisions = frequent(
    'decisions_total',
    'Decisions by route, limit shown in the headers (block: a block rejected; in_flight: too many requests ran at the same time), outcome, lane if the request has one, and unit of the window unless it counts requests',
    'route',
    'limit',
    'outcome',
    'lane',
    'unit',
  );
  const groupRejections = counter(
    'group_rejections_total',
    'Requests that the limit of a group rejected, by route and group',
    'route',
    'group',
  );
  const requests = frequent(
    'requests_total',
    'Answered requests by route ("none": no route matched) and status (a class such as 4xx if the status has no name)',
    'route',
    'status',
  );
  const doorRequests = counter(
    'decision_requests_total',
    'Answered requests for decisions by door (json, forward_auth, envoy) and status (of HTTP; of envoy the code of the answer or of gRPC)',
    'door',
    'status',
  );
  const descriptors = counter(
    'rate_limit_descriptors_total',
    "Descriptors of Envoy's calls by domain of the config (or unknown) and outcome: accepted, rejected, shadow, unknown_account, unmatched (not limited)",
    'domain',
    'outcome',
  );
  const providerRejections = counter(
    'provider_rejections_total',
    "429 answers of the provider's own limits, by route",
    'route',
  );
  const cooldowns = counter(
    'cooldowns_total',
    "Pauses of accounts by a provider's answer: started, or ended by an accepted request; by route",
    'route',
    'state',
  );
  const upstreamErrors = counter(
    'upstream_errors_total',
    'Requests that the upstream did not answer, or not in full, by upstream (host and port) and cause',
    'upstream',
    'cause',
  );
  const adminRequests = counter(
    'admin_requests_total',
    'Answered requests of the Admin API by operation ("none": there is no such operation) and status',
    'operation',
    'status',
  );
  const adminFailures = counter('admin_auth_failures_total', 'Requests of the Admin API without a valid token');
  const shadowDecisions = counter(
    'shadow_decisions_total',
    'Requests that a candidate for other limits was asked about, by route, limit that rejects (that of the candidate, or else the current one), and what both say: accepted or rejected',
    'route',
    'limit',
    'current',
    'candidate',
  );
  const shadowMissed = {
    dropped: counter(
      'shadow_dropped_total',
      'Requests that no candidate was asked about, because too many checks were under way',
    ),
    failed: counter(
      'shadow_failed_total',
      'Checks of a candidate in which its store failed, or did not answer in time',
    ),
  };
  const addressDecisions = counter(
    'address_decisions_total',
    'Requests by the decision of perAddress about their address: accepted, rejected or degraded',
    'outcome',
  );
  const refunds = counter('refunds_total', 'Refunded charges, by route', 'route');
  const failures = counter('failures_total', 'Internal errors in the gate, by stage', 'stage');
  const storeSeconds = new Histogram({
    name: 'headgate_store_seconds',
    help: 'Duration of calls to the store, by operation',
    labelNames: ['operation'],
    buckets: FAST,
    registers,
  });
  const upstreamSeconds = new Histogram({
    name: 'headgate_upstream_seconds',
    help: "Time until the head of the upstream's answer",
    labelNames: ['route'],
    buckets: SLOW,
    registers,
  });
  const upstreamOf = observers(upstreamSeconds);
  const storeOf = observers(storeSeconds);
  const certificates = new Gauge({
    name: 'headgate_tls_certificate_expiry_timestamp_seconds',
    help: 'When the certificate of a listener expires, in seconds since 1970',
    labelNames: ['listener'],
    aggregator: 'max',
    registers,
  });
  const add = ({ type, name: shortName, help, value, aggregator = 'sum' }: ScrapedMetric): void => {
    const name = `headgate_${shortName}`;
    if (type === 'gauge') {
      new Gauge({
        name,
        help,
        aggregator,
        registers,
        async collect() {
          this.set(await value());
        },
      });
    } else {
      new Counter({
        name,
        help,
        registers,
        collect() {
          // A counter offers no set(). Its owner counts, so it is read anew for each scrape.
          this.reset();
          this.inc(value());
        },
      });
    }
  };
  for (const metric of storeMetrics) add(metric);
  return {
    config: createConfigMetrics(registers),
    inFlight: createInFlightMetrics(registers),
    begin(routes, upstreams) {
      for (const route of routes) providerRejections.inc({ route }, 0);
      for (const upstream of upstreams) for (const cause of UPSTREAM_CAUSES) upstreamErrors.inc({ upstream, cause }, 0);
      for (const stage of STAGES) failures.inc({ stage }, 0);
    },
    add(more) {
      for (const metric of more) add(metric);
    },
    onIdempotency: createIdempotencyMetrics(registers),
    families: () => familiesOf(registry),
    render: async () => ({ contentType: registry.contentType, text: await registry.metrics() }),
    onEvent(event) {
      switch (event.type) {
        case 'decision': {
          const { route, lane, shown, rejectedBy } = event.decision;
          const limit = shown?.limit ?? withoutWindow(event.decision);
          // Lane, unit and group are names of the config: a limiter refuses any other.
          decisions.inc(route, limit, outcomeOf(event.decision), lane, shown?.unit);
          if (rejectedBy !== undefined && rejectedBy !== 'account') groupRejections.inc({ route, group: rejectedBy });
          break;
        }
        case 'provider_rejected':
          providerRejections.inc({ route: event.decision?.route ?? 'unlimited' });
          break;
        case 'cooldown':
          cooldowns.inc({ route: event.decision.route, state: event.state });
          break;
        case 'refund':
          if (event.refunded) refunds.inc({ route: event.decision.route });
          break;
        case 'failure':
          failures.inc({ stage: event.stage });
          break;
      }
    },
    onAddress: (decision) => addressDecisions.inc({ outcome: outcomeOf(decision) }),
    onRequest: (route, status) => requests.inc(route ?? 'none', statusLabel(status)),
    onRefund: (route) => refunds.inc({ route }),
    onDoorRequest: (door, status) =>
      doorRequests.inc({ door, status: typeof status === 'number' ? statusLabel(status) : status }),
    onDescriptor: (domain, outcome) => descriptors.inc({ domain, outcome }),
    onUpstreamFailure: (upstream, cause) => upstreamErrors.inc({ upstream, cause }),
    onUpstream: (route, seconds) => upstreamOf(route).observe(seconds),
    onCertificate: (listener, expiresAtMs) => certificates.set({ listener }, expiresAtMs / 1_000),
    onAdminRequest: (operation = 'none', status) => adminRequests.inc({ operation, status: String(status) }),
    onAdminAuthFailure: () => adminFailures.inc(),
    onShadow({ outcome, limit, current }) {
      const candidate = outcome === 'none' || outcome === 'onlyCurrent' ? 'accepted' : 'rejected';
      const labels = { route: current.route, limit, current: current.accepted ? 'accepted' : 'rejected', candidate };
      shadowDecisions.inc(labels);
    },
    onShadowMissed: (what) => shadowMissed[what].inc(),
    measured: (store, onCall) =>
      measuredStore(store, (operation, seconds) => {
        storeOf(operation).observe(seconds);
        onCall?.(seconds);
      }),
  };
}

/** What rejected a request, if no window did. */
function withoutWindow({ accepted, blocked, inFlight }: Decision): 'none' | 'block' | 'in_flight' {
  if (blocked !== undefined) return 'block';
  return accepted || inFlight === undefined ? 'none' : 'in_flight';
}

function outcomeOf({ accepted, degraded }: Decision): 'accepted' | 'rejected' | 'degraded' {
  if (degraded) return 'degraded';
  return accepted ? 'accepted' : 'rejected';
}

/** The observers of a histogram with one label, by the label's value. */
function observers(histogram: Histogram): (value: string) => Histogram.Internal<string> {
  const byValue = new Map<string, Histogram.Internal<string>>();
  return (value) => getOrCreate(byValue, value, () => histogram.labels(value));
}

/** An upstream may answer with any number. Each label is a series, so a status without a name counts by its class. */
function statusLabel(status: number): string {
  if (status in STATUS_CODES || status === CLIENT_GONE) return String(status);
  return status >= 100 && status < 600 ? `${Math.floor(status / 100)}xx` : 'other';
}
