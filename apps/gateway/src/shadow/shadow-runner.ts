import type { Decision } from 'headgate';
import type { GateEvent } from 'headgate/gate';
import { ShadowChecks, WindowSets } from 'headgate/internal';
import type { LayeredLimits } from 'headgate/limits';
import type { ShadowDecision } from 'headgate/shadow';
import type { LimitStore } from 'headgate/stores';
import type { Config } from '../config/schema.ts';
import type { Log } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';
import type { GatewayStore } from '../store/gateway-store.ts';
import type { SaidShadow } from '../traffic/process-details.ts';
import type { Traffic } from '../traffic/traffic.ts';
import {
  type Candidate,
  configuredCandidate,
  layersOf,
  newCandidate,
  readCandidate,
  writeCandidate,
} from './candidate.ts';

/** A candidate that decides about requests now. */
export interface RunningCandidate {
  readonly candidate: Candidate;
  readonly limits: LayeredLimits;
  readonly checks: ShadowChecks;
  readonly since: Date;
  /** Whether all processes count together, or each by itself. */
  readonly counters: 'shared' | 'process';
}

/** The parts of a process that its candidate needs. */
export interface ShadowParts {
  readonly store: Pick<GatewayStore, 'kind' | 'fleet' | 'openShadow'>;
  readonly log: Log;
  readonly metrics: Pick<Metrics, 'onShadow' | 'onShadowMissed'>;
  readonly traffic: Pick<Traffic, 'onShadow'>;
}

/** Most requests whose outcome waits for the line of the log. Only one that was logged too early stays here. */
const MAX_DIFFERING = 1_000;
const MAX_UNDER_WAY = 1_000;
const TIMEOUT_MS = 1_000;

/** Runs the operator's candidate, or else the config's. */
export class ShadowRunner {
  readonly #parts: ShadowParts;
  #config: Config;
  #put: Candidate | undefined;
  #running: RunningCandidate | undefined;
  readonly #requestIds = new WeakMap<Decision, string>();
  /** The candidate's verdicts on requests about which the two differ, by request id. */
  readonly #differing = new Map<string, 'accepted' | 'rejected'>();

  constructor(config: Config, parts: ShadowParts) {
    this.#config = config;
    this.#parts = parts;
    parts.store.fleet?.watchCandidate(({ id, text }) => this.#onStored(id, text));
    this.#apply();
  }

  get running(): RunningCandidate | undefined {
    return this.#running;
  }

  get checks(): ShadowChecks | undefined {
    return this.#running?.checks;
  }

  /** This process's report to the others; undefined without a candidate. */
  get said(): SaidShadow | undefined {
    return this.#running && { id: this.#running.candidate.id, total: this.#running.checks.total };
  }

  /** Whether the candidate of an operator outlives every process. */
  get isDurable(): boolean {
    return this.#parts.store.fleet !== undefined;
  }

  /** Whether an operator started a candidate. */
  get isPut(): boolean {
    return this.#put !== undefined;
  }

  /** From now on the candidate of another config applies, unless an operator started one. */
  setConfig(config: Config): void {
    this.#config = config;
    this.#apply();
  }

  /**
   * Runs a candidate in every process with the same store.
   * @throws the store's errors: then it may run nevertheless
   */
  async put(settings: Candidate['settings'], by: string, reason: string | undefined): Promise<void> {
    const candidate = newCandidate(settings, by, reason);
    await this.#parts.store.fleet?.writeCandidate({ id: candidate.id, text: writeCandidate(candidate) });
    this.#put = candidate;
    this.#apply();
  }

  /** Ends the candidate of an operator in every process with the same store. Throws as `put` does. */
  async end(): Promise<void> {
    await this.#parts.store.fleet?.writeCandidate({ id: '', text: '' });
    this.#put = undefined;
    this.#apply();
  }

  /** Remembers the request of a decision, if a candidate will be asked about it. */
  onEvent(event: GateEvent): void {
    if (this.#running !== undefined && event.type === 'decision') this.#requestIds.set(event.decision, event.requestId);
  }

  /** The candidate's verdict about a request so far, if it differs. Only the first call returns it. */
  takeVerdict(requestId: string): 'accepted' | 'rejected' | undefined {
    if (this.#differing.size === 0) return undefined;
    const verdict = this.#differing.get(requestId);
    this.#differing.delete(requestId);
    return verdict;
  }

  close(): void {
    this.#stop();
  }

  #onStored(id: string, text: string): void {
    const { log } = this.#parts;
    const candidate = id === '' ? undefined : readCandidate(id, text);
    if (id !== '' && candidate === undefined) log.logger.warn('shadow: this version cannot read the candidate');
    this.#put = candidate;
    this.#apply();
  }

  /** Runs the current candidate. If it is the same as before, it goes on with its counters and figures. */
  #apply(): void {
    const { log, store } = this.#parts;
    const candidate = this.#put ?? configuredCandidate(this.#config);
    const before = this.#running;
    if (candidate === undefined) {
      if (before !== undefined) log.logger.info('shadow: ended');
      this.#stop();
      return;
    }
    try {
      const limits = layersOf(this.#config, candidate.settings);
      if (before?.candidate.id === candidate.id && JSON.stringify(before.limits) === JSON.stringify(limits)) return;
      const windowSets = new WindowSets(limits);
      const { sample, store: where } = candidate.settings;
      this.#stop();
      this.#running = {
        ...{ candidate, limits, since: new Date() },
        checks: this.#createChecks(windowSets, store.openShadow(where), sample),
        counters: where === 'memory' || store.kind === 'memory' ? 'process' : 'shared',
      };
      const { source, by, reason } = candidate;
      log.logger.info({ source, by, reason, sample, store: where }, 'shadow: a candidate runs');
    } catch (error) {
      // Another process's candidate does not fit this config. Requests must not suffer.
      log.logger.warn({ err: error }, 'shadow: the candidate cannot run here');
      this.#stop();
    }
  }

  #createChecks(windowSets: WindowSets, store: LimitStore, sample: number): ShadowChecks {
    const { log, metrics } = this.#parts;
    return new ShadowChecks({
      ...{ windowSets, store, sample, maxUnderWay: MAX_UNDER_WAY, timeoutMs: TIMEOUT_MS },
      onDecision: (decision) => this.#onDecision(decision),
      onMissed: (what) => metrics.onShadowMissed(what),
      log: (message, err) => log.logger.error({ err }, message),
    });
  }

  #onDecision(decision: ShadowDecision): void {
    const { outcome, current } = decision;
    this.#parts.metrics.onShadow(decision);
    if (outcome === 'both' || outcome === 'none') return;
    const requestId = this.#requestIds.get(current);
    if (requestId === undefined) return;
    this.#parts.traffic.onShadow({ requestId, decision });
    this.#differing.set(requestId, outcome === 'onlyCurrent' ? 'accepted' : 'rejected');
    if (this.#differing.size > MAX_DIFFERING) this.#differing.delete(this.#differing.keys().next().value as string);
  }

  #stop(): void {
    this.#running?.checks.close();
    this.#running = undefined;
    this.#differing.clear();
  }
}
