import { STATUS_CODES } from 'node:http';
import type { GateEvent } from 'headgate/gate';
import type { IdempotencyEvent } from 'headgate/idempotency';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { SEND_OUTCOMES, type SendOutcome } from '../domain/send-outcome.ts';
import type { RenderedMetrics } from './admin.ts';
import type { DatabaseFigures } from './figures.ts';
import type { ReadMetric } from './store-metrics.ts';

/** From a few milliseconds to the longest that a provider may take. */
const SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10, 60];
/** From a delivery at once to the last of the attempts of a day. */
const LAG_SECONDS = [0.1, 1, 5, 30, 300, 3_600, 86_400];

const WEBHOOK_OUTCOMES = ['delivered', 'failed'] as const;
type WebhookOutcome = (typeof WEBHOOK_OUTCOMES)[number];

export interface MetricsOptions {
  readonly version: string;
  readonly role: string;
  /** Whether the metrics of the process itself are there as well. Their collection costs a little all the time. */
  readonly hasProcessMetrics: boolean;
}

/** The metrics of `/metrics`. No label ever contains an account, an application, an address or a token. */
export class Metrics {
  readonly #registry = new Registry();
  #readDatabase: () => Promise<void> = async () => undefined;

  readonly #requests = this.#counter('communication_api_requests_total', 'Answered requests', 'route', 'status');
  readonly #requestSeconds = this.#histogram(
    'communication_api_request_seconds',
    'Time from the head of a request to the end of its answer',
    SECONDS,
    'route',
  );
  readonly #sends = this.#counter('communication_api_sends_total', 'Attempts to send an email', 'provider', 'outcome');
  readonly #sendErrors = this.#counter(
    'communication_api_send_errors_total',
    'Attempts to send an email that ended with an error, by the type in its answer',
    'provider',
    'type',
  );
  readonly #sendSeconds = this.#histogram(
    'communication_api_send_seconds',
    'Duration of an attempt to send, with the journal and the provider',
    SECONDS,
    'provider',
  );
  readonly #webhooks = this.#counter(
    'communication_api_webhook_requests_total',
    'Requests to webhook endpoints',
    'outcome',
  );
  readonly #webhookLag = this.#histogram(
    'communication_api_webhook_lag_seconds',
    'Time from an event to the first request with it to an endpoint',
    LAG_SECONDS,
  );
  readonly #decisions = this.#counter(
    'headgate_decisions_total',
    'Decisions by route, limit shown in the headers, and outcome',
    'route',
    'limit',
    'outcome',
  );
  readonly #providerRejections = this.#counter(
    'headgate_provider_rejections_total',
    "429 answers of the provider's own limits, by route",
    'route',
  );
  readonly #cooldowns = this.#counter(
    'headgate_cooldowns_total',
    "Pauses of accounts by a provider's answer: started, or ended by an accepted request; by route",
    'route',
    'state',
  );
  readonly #refunds = this.#counter('headgate_refunds_total', 'Refunded charges, by route', 'route');
  readonly #failures = this.#counter('headgate_failures_total', 'Internal errors in the gate, by stage', 'stage');
  readonly #claims = this.#counter(
    'headgate_idempotency_claims_total',
    'Requests with an idempotency key, by outcome',
    'outcome',
  );
  readonly #claimSteps = this.#counter('headgate_idempotency_steps_total', 'Steps of claims', 'step');
  readonly #waits = this.#histogram(
    'headgate_idempotency_wait_seconds',
    'Time that duplicates waited for the outcome of their original',
    SECONDS,
  );

  constructor({ version, role, hasProcessMetrics }: MetricsOptions) {
    if (hasProcessMetrics) collectDefaultMetrics({ register: this.#registry });
    this.#gauge('communication_api_build_info', 'Always 1; the labels say what runs', 'version', 'role').set(
      { version, role },
      1,
    );
  }

  /** The text in Prometheus's format. */
  async render(): Promise<RenderedMetrics> {
    await this.#readDatabase();
    return { contentType: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  /** Begins the counters of providers at 0: an alert cannot see the increase of a series that was not there. */
  addProviders(providers: readonly string[]): void {
    for (const provider of providers) for (const outcome of SEND_OUTCOMES) this.#sends.inc({ provider, outcome }, 0);
    for (const outcome of WEBHOOK_OUTCOMES) this.#webhooks.inc({ outcome }, 0);
  }

  /** Adds metrics that are read at every scrape. */
  addRead(metrics: readonly ReadMetric[]): void {
    for (const { type, name, help, read } of metrics) {
      const registers = [this.#registry];
      if (type === 'gauge')
        new Gauge({
          ...{ name, help, registers },
          collect() {
            this.set(read());
          },
        });
      else
        new Counter({
          ...{ name, help, registers },
          collect() {
            // A counter lacks set(). Its owner counts, so each scrape reads the value anew.
            this.reset();
            this.inc(read());
          },
        });
    }
  }

  /** Adds the figures of the database, read once per scrape. While it is away, only the gauge `database_up` says so. */
  addDatabase(readFigures: () => Promise<DatabaseFigures>): void {
    const rows = this.#gauge(
      'communication_api_journal_sends',
      'Sends in the journal without an outcome, by state',
      'state',
    );
    const ages = this.#gauge(
      'communication_api_journal_oldest_seconds',
      'Age of the oldest send without an outcome, by state; 0 without such a send',
      'state',
    );
    const jobs = this.#gauge('communication_api_jobs', 'Jobs that are not done, by kind', 'kind');
    const overdue = this.#gauge(
      'communication_api_jobs_overdue_seconds',
      'For how long the job that waits longest has been due, by kind; 0 if none is due',
      'kind',
    );
    const processes = this.#gauge('communication_api_processes', 'Processes that show signs of life, by role', 'role');
    const up = this.#gauge('communication_api_database_up', 'Whether the database has answered this scrape: 1 or 0');
    this.#readDatabase = async () => {
      const figures = await readFigures().catch(() => undefined);
      for (const gauge of [rows, ages, jobs, overdue, processes]) gauge.reset();
      up.set(figures === undefined ? 0 : 1);
      for (const { state, sends, oldestSeconds } of figures?.journal ?? []) {
        rows.set({ state }, sends);
        ages.set({ state }, oldestSeconds);
      }
      for (const { kind, jobs: count, overdueSeconds } of figures?.jobs ?? []) {
        jobs.set({ kind }, count);
        overdue.set({ kind }, overdueSeconds);
      }
      for (const { role, processes: count } of figures?.processes ?? []) processes.set({ role }, count);
    };
  }

  /** @param route with its method; undefined if no route matched */
  onRequest(route: string | undefined, status: number, seconds: number): void {
    this.#requests.inc({ route: route ?? 'none', status: status in STATUS_CODES ? String(status) : 'other' });
    this.#requestSeconds.observe({ route: route ?? 'none' }, seconds);
  }

  /** @param errorType undefined: it ended without an error */
  onSend(provider: string, outcome: SendOutcome, errorType: string | undefined, seconds: number): void {
    this.#sends.inc({ provider, outcome });
    if (errorType !== undefined) this.#sendErrors.inc({ provider, type: errorType });
    this.#sendSeconds.observe({ provider }, seconds);
  }

  /** @param lagSeconds undefined: the event was sent to the endpoint before */
  onWebhook(outcome: WebhookOutcome, lagSeconds: number | undefined): void {
    this.#webhooks.inc({ outcome });
    if (lagSeconds !== undefined) this.#webhookLag.observe(lagSeconds);
  }

  readonly onGate = (event: GateEvent): void => {
    if (event.type === 'decision') {
      const { route, shown, accepted, degraded } = event.decision;
      const outcome = degraded ? 'degraded' : accepted ? 'accepted' : 'rejected';
      this.#decisions.inc({ route, limit: shown?.limit ?? 'none', outcome });
    } else if (event.type === 'provider_rejected')
      this.#providerRejections.inc({ route: event.decision?.route ?? 'unlimited' });
    else if (event.type === 'cooldown') this.#cooldowns.inc({ route: event.decision.route, state: event.state });
    else if (event.type === 'refund' && event.refunded) this.#refunds.inc({ route: event.decision.route });
    else if (event.type === 'failure') this.#failures.inc({ stage: event.stage });
  };

  readonly onIdempotency = (event: IdempotencyEvent): void => {
    switch (event.type) {
      case 'claimed':
        this.#claims.inc({ outcome: event.inherited ? 'inherited' : 'claimed' });
        break;
      case 'refused':
        this.#claims.inc({ outcome: event.reason });
        break;
      case 'replayed':
      case 'bypassed':
      case 'unavailable':
        this.#claims.inc({ outcome: event.type });
        break;
      case 'waited':
        this.#waits.observe(event.waitedMs / 1_000);
        break;
      case 'completed':
        this.#claimSteps.inc({ step: event.valueKept ? 'completed' : 'not_kept' });
        break;
      case 'reconciled':
        break;
      default:
        this.#claimSteps.inc({ step: event.type });
    }
  };

  #counter(name: string, help: string, ...labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.#registry] });
  }

  #gauge(name: string, help: string, ...labelNames: string[]): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] });
  }

  #histogram(name: string, help: string, buckets: number[], ...labelNames: string[]): Histogram {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }
}
