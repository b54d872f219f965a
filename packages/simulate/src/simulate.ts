import type { Cost, Decision } from 'headgate';
import { OptionError } from 'headgate';
import { checkOptions } from 'headgate/internal';
import { emptyMatrix, Groups } from './groups.ts';
import { Headroom } from './headroom.ts';
import { type Policy, SimulatedPolicy, TraceClock, type UnknownName } from './policy.ts';
import type { LoggedDifference, LoggedFigures, OutcomeMatrix, SimulationReport } from './report.ts';
import { Timeline } from './timeline.ts';
import { emptyFigures, type Trace, type TraceEvent, type TraceRequest } from './trace.ts';

export type { AccountLimits, Policy } from './policy.ts';

/** Options of {@link simulate}. */
export interface SimulateOptions {
  /** The limits that judged the requests of the trace. */
  readonly current: Policy;
  /** The limits that are compared with them. Without a candidate the report shows the current limits' decisions. */
  readonly candidate?: Policy | undefined;
  /** What `readTrace` returned, or events in the order of their times. */
  readonly trace: Trace | Iterable<TraceEvent>;
  /** Called for each request. For tests and tools: it is in the way of the next one. */
  readonly onRequest?: ((request: TraceRequest, current: Decision, candidate: Decision) => void) | undefined;
  /** Called from time to time, with the figures so far. */
  readonly onProgress?: ((figures: Trace['figures']) => void) | undefined;
}

const TOP_ACCOUNTS = 50;
const SHOWN_DIFFERENCES = 20;
const NO_PROVIDER = '(none)';

/**
 * Lets the trace pass the current limits and the candidate, each with the core and the memory store of headgate on the
 * clock of the trace, and reports who would have been rejected.
 * @example
 * ```ts
 * const report = await simulate({
 *   current: { limits: { allMethods: ['60/1m'] } },
 *   candidate: { limits: { allMethods: ['30/1m'] } },
 *   trace: readTrace(createReadStream('access.log')),
 * });
 * ```
 * @throws LimitError, OptionError with the place of the fault; TraceError if the trace is damaged
 */
export async function simulate(options: SimulateOptions): Promise<SimulationReport> {
  checkOptions(options, ['current', 'candidate', 'trace', 'onRequest', 'onProgress'], 'options');
  const { trace, onProgress } = options;
  const simulation = new Simulation(options);
  if (isTrace(trace)) {
    for await (const events of trace) {
      for (const event of events) simulation.add(event);
      onProgress?.(trace.figures);
    }
    return simulation.report(trace.figures);
  }
  if (typeof trace?.[Symbol.iterator] !== 'function')
    throw new OptionError('trace', trace, 'must be what readTrace() returned, or a list of events');
  const figures = emptyFigures();
  for (const event of trace) {
    if (!('settles' in event)) figures.requests++;
    simulation.add(event);
  }
  return simulation.report(figures);
}

function isTrace(trace: SimulateOptions['trace'] | undefined): trace is Trace {
  return typeof (trace as Partial<Trace> | undefined)?.[Symbol.asyncIterator] === 'function';
}

class Simulation {
  readonly #clock = new TraceClock();
  readonly #current: SimulatedPolicy;
  readonly #candidate: SimulatedPolicy | undefined;
  readonly #onRequest: SimulateOptions['onRequest'];
  readonly #matrix = emptyMatrix();
  readonly #routes = new Groups();
  readonly #providers = new Groups();
  readonly #accounts = new Groups();
  readonly #headroom = { current: new Headroom(), candidate: new Headroom() };
  readonly #timeline = new Timeline();
  readonly #logged = { accepted: 0, rejected: 0, agree: 0, differ: 0 };
  readonly #differences: LoggedDifference[] = [];
  /** Decisions whose cost is still to be corrected. */
  readonly #unsettled = new Map<string, readonly Decision[]>();
  #from: number | undefined;
  #to: number | undefined;
  #lostSettlements = 0;
  readonly #unknown = { unknown_plan: 0, unknown_lane: 0 };

  constructor({ current, candidate, onRequest }: SimulateOptions) {
    this.#current = new SimulatedPolicy(current, 'current', this.#clock);
    this.#candidate = candidate && new SimulatedPolicy(candidate, 'candidate', this.#clock);
    this.#onRequest = onRequest;
  }

  add(event: TraceEvent): void {
    this.#clock.moveTo(event.at);
    if ('settles' in event && event.settles !== undefined) this.#settle(event.settles, event.cost);
    else this.#decide(event as TraceRequest);
  }

  report(trace: Trace['figures']): SimulationReport {
    const { none, both, onlyCurrent, onlyCandidate } = this.#matrix;
    const requests = none + both + onlyCurrent + onlyCandidate;
    const hasCandidate = this.#candidate !== undefined;
    const current = this.#headroom.current.list();
    return {
      trace,
      hasCandidate,
      requests,
      from: this.#from,
      to: this.#to,
      matrix: this.#matrix,
      newlyRejected: requests === 0 ? 0 : onlyCandidate / requests,
      logged: this.#loggedFigures(),
      routes: this.#routes.list(),
      providers: this.#providers.list(),
      accounts: this.#accounts.list(TOP_ACCOUNTS).map(({ none: _, ...account }) => account),
      accountsNewlyRejected: this.#accounts.newlyRejected,
      accountsNewlyPassed: this.#accounts.newlyPassed,
      headroom: { current, candidate: hasCandidate ? this.#headroom.candidate.list() : current },
      timeline: this.#timeline.list(),
      lostSettlements: this.#lostSettlements,
      unknownPlans: this.#unknown.unknown_plan,
      unknownLanes: this.#unknown.unknown_lane,
    };
  }

  #decide(request: TraceRequest): void {
    const current = this.#current.decide(request);
    const candidate = this.#candidate === undefined ? current : this.#candidate.decide(request);
    if (typeof current === 'string' || typeof candidate === 'string') {
      this.#unknown[(typeof current === 'string' ? current : candidate) as UnknownName]++;
      return;
    }
    const { account, route, id, logged } = request;
    const at = this.#clock.now();
    this.#from ??= at;
    this.#to = at;
    if (id !== undefined) this.#unsettled.set(id, current === candidate ? [current] : [current, candidate]);
    const outcome = outcomeOf(current, candidate);
    const lockedOutMs = outcome === 'onlyCandidate' ? (candidate.shown?.resetMs ?? 0) : 0;
    this.#matrix[outcome]++;
    this.#routes.add(route, outcome, at, lockedOutMs);
    this.#providers.add(this.#current.provider(request) ?? NO_PROVIDER, outcome, at, lockedOutMs);
    // Accounts without rejections are only counted in the sums: there may be millions.
    if (outcome !== 'none') this.#accounts.add(account, outcome, at, lockedOutMs);
    this.#timeline.add(at, !current.accepted, !candidate.accepted);
    if (current.accepted) this.#headroom.current.add(current);
    if (candidate !== current && candidate.accepted) this.#headroom.candidate.add(candidate);
    if (logged !== undefined) this.#compare(request, logged, current);
    this.#onRequest?.(request, current, candidate);
  }

  #compare({ at, account, route }: TraceRequest, logged: 'accepted' | 'rejected', current: Decision): void {
    this.#logged[logged]++;
    if (current.accepted === (logged === 'accepted')) this.#logged.agree++;
    else {
      this.#logged.differ++;
      if (this.#differences.length < SHOWN_DIFFERENCES) this.#differences.push({ at, account, route, logged });
    }
  }

  #settle(id: string, cost: Cost): void {
    const decisions = this.#unsettled.get(id);
    if (decisions === undefined) this.#lostSettlements++;
    this.#unsettled.delete(id);
    const [current, candidate] = decisions ?? [];
    if (current !== undefined) this.#current.settle(current, cost);
    if (candidate !== undefined) this.#candidate?.settle(candidate, cost);
  }

  #loggedFigures(): LoggedFigures | undefined {
    const { accepted, rejected } = this.#logged;
    return accepted + rejected === 0 ? undefined : { ...this.#logged, first: this.#differences };
  }
}

function outcomeOf(current: Decision, candidate: Decision): keyof OutcomeMatrix {
  if (current.accepted) return candidate.accepted ? 'none' : 'onlyCandidate';
  return candidate.accepted ? 'onlyCurrent' : 'both';
}
