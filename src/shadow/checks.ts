import { Emitter } from '../base/emitter.ts';
import { getOrCreate } from '../base/get-or-create.ts';
import type { Logger } from '../base/logger.ts';
import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { onNextTurn } from '../base/slices.ts';
import type { Decision } from '../core/decision.ts';
import type { LimitName } from '../core/limit.ts';
import type { LimitStore, ResetTarget } from '../core/ports.ts';
import type { Cost } from '../core/unit.ts';
import { EVERY_ROUTE, type WindowSet, withMaxes } from '../core/window-set.ts';
import { copyOfRequest, costsIn } from '../limits/costs.ts';
import { accountsOf, resolveAll } from '../limits/groups.ts';
import { decideJointly, OF_ACCOUNT } from '../limits/joint-decision.ts';
import type { LimitRequest } from '../limits/ports.ts';
import { costedParts, jointRequest, routesOfUnits, settlementsOf, unitParts } from '../limits/unit-parts.ts';
import type { WindowSetSource } from '../limits/window-set-source.ts';
import { resolveWindowSet } from '../limits/window-sets.ts';
import { PendingCalls } from './calls.ts';
import { type ShadowCounts, type ShadowFigures, type ShadowOutcome, ShadowTally } from './figures.ts';

/** The verdicts of the limits in force and of the candidate about one request. */
export interface ShadowDecision {
  readonly outcome: ShadowOutcome;
  /**
   * The limit that rejected the request: the candidate's, or else the current one. `block`: a block rejected it,
   * for both. `in_flight`: too many requests ran at the same time, for both. `none`: both accept it.
   */
  readonly limit: LimitName | 'block' | 'in_flight' | 'none';
  /** The decision that the caller got. */
  readonly current: Decision;
  /** Undefined if a block or the requests in flight rejected the request. */
  readonly candidate: Decision | undefined;
}

/** What {@link ShadowChecks} needs, checked. */
export interface ShadowSettings {
  readonly windowSets: WindowSetSource;
  readonly store: LimitStore;
  readonly sample: number;
  readonly maxUnderWay: number;
  readonly timeoutMs: number;
  readonly onDecision: ((decision: ShadowDecision) => void) | undefined;
  /** Is called with each check without an outcome. */
  readonly onMissed?: ((what: 'dropped' | 'failed') => void) | undefined;
  readonly log: Logger;
}

/** A request that the candidate is to decide about. */
export interface ShadowRequest {
  readonly request: LimitRequest;
  /** Undefined until the candidate accepted the request. */
  candidate: Decision | undefined;
  /** The final costs of the request, as far as they were known before the candidate had decided: a unit each (S33). */
  readonly finalCosts: Cost[];
}

/** Accounts that share so many last characters are in the sample together. It bounds the time for a long account. */
const MAX_SAMPLED_LENGTH = 256;
/** Checks that begin in one turn of the event loop: the requests of the process must not wait for more. */
const AT_ONCE = 100;

/**
 * Asks a candidate about requests after they were decided. Nobody waits for it. A fault of the candidate's store
 * is counted, and changes nothing else.
 */
export class ShadowChecks {
  readonly #settings: ShadowSettings;
  readonly #events: Emitter<ShadowDecision>;
  readonly #tally = new ShadowTally();
  readonly #calls: PendingCalls;
  #tasks: (() => void)[] = [];
  /** How many of the tasks began. */
  #begun = 0;
  #isScheduled = false;
  /** Made once: a request pays for whatever is made when it schedules a turn. */
  readonly #onTurn = (): void => this.#run();
  /** By the decision that the caller got, so that its settlement is repeated here. */
  readonly #requests = new WeakMap<Decision, ShadowRequest>();
  /** One per window set, because stores cache by the identity of a window set. */
  readonly #copies = new WeakMap<WindowSet, WindowSet>();
  /** A call reached its deadline, and the store has not answered any call since. */
  #isStuck = false;
  #isClosed = false;
  #waiting: (() => void)[] = [];

  constructor(settings: ShadowSettings) {
    this.#settings = settings;
    this.#events = new Emitter(settings.onDecision, settings.log, 'onDecision');
    this.#calls = new PendingCalls(settings.timeoutMs);
  }

  /** Remembers a request, because its caller may change it. Undefined if it is not in the sample, or is no request. */
  prepare(given: LimitRequest): ShadowRequest | undefined {
    try {
      const { account, route, provider, plan, lane, limits, cost, groups } = copyOfRequest(given);
      if (this.#isClosed || !isInSample(account, this.#settings.sample)) return undefined;
      const request = { account, route, provider, plan, lane, limits, cost, groups };
      return { request, candidate: undefined, finalCosts: [] };
    } catch {
      // The limiter reported the fault.
      return undefined;
    }
  }

  /** @param current the decision that the caller got, or will get before this is checked */
  add(shadow: ShadowRequest | undefined, current: Decision): void {
    if (shadow !== undefined) this.#add(shadow.request.route, () => this.#check(shadow, current));
  }

  /** Charges as the limiter was told to. A candidate's store that cannot counts as a failure. */
  charge({ request }: ShadowRequest): void {
    const { account, route = EVERY_ROUTE, cost = 1 } = request;
    const { windowSets, store } = this.#settings;
    this.#add(route, () =>
      this.#call(route, () =>
        after(resolveWindowSet(windowSets, request), (windowSet) =>
          Promise.all(
            costedParts(route, this.#copyOf(windowSet), costsIn(cost)).map((part) =>
              (store as Required<LimitStore>).charge(account, part.route, part.windowSet, part.cost),
            ),
          ),
        ),
      ),
    );
  }

  /** @param cost has been checked */
  settle(current: Decision, cost: Cost): void {
    if (!current.accepted || !isInSample(current.account, this.#settings.sample)) return;
    this.#add(undefined, () => {
      const shadow = this.#requests.get(current);
      if (shadow === undefined) return;
      // The store says whether it was settled before, as the limiter's store does.
      if (shadow.candidate === undefined) shadow.finalCosts.push(cost);
      else this.#settle(shadow.candidate, cost);
    });
  }

  reset(target: ResetTarget): void {
    const { store, windowSets } = this.#settings;
    const routes = target.route === undefined ? [] : routesOfUnits(target.route, windowSets.units ?? []);
    for (const each of [target, ...routes.map((route) => ({ ...target, route }))])
      this.#add(undefined, () => this.#call(undefined, () => store.reset(each)));
  }

  figures(): ShadowFigures {
    return this.#tally.figures();
  }

  get total(): ShadowCounts {
    return this.#tally.total;
  }

  /** Resolves once no check waits or is under way. */
  async idle(): Promise<void> {
    while (this.#size > 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Forgets all checks, and closes the store. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#tasks = [];
    this.#begun = 0;
    this.#calls.clear();
    this.#wake();
    this.#call(undefined, () => this.#settings.store.close?.());
    this.#calls.clear();
  }

  get #size(): number {
    return this.#tasks.length - this.#begun + this.#calls.size;
  }

  #add(route: string | undefined, task: () => void): void {
    if (this.#isClosed) return;
    // One call at a time tests a store that is stuck. Otherwise calls that it never answers would pile up in it.
    if (this.#size >= (this.#isStuck ? 1 : this.#settings.maxUnderWay)) this.#miss('dropped', route);
    else {
      this.#tasks.push(task);
      this.#schedule();
    }
  }

  /** Tasks begin in a later turn of the event loop, after whoever waits for the decision got it. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    onNextTurn(this.#onTurn);
  }

  #run(): void {
    this.#isScheduled = false;
    // What these tasks add is left for a later turn.
    for (let count = Math.min(AT_ONCE, this.#tasks.length - this.#begun); count > 0; count--)
      this.#begin(this.#tasks[this.#begun++]);
    // Only if at least half are removed, so that no task is moved more than once on average.
    if (this.#begun * 2 >= this.#tasks.length) {
      this.#tasks.splice(0, this.#begun);
      this.#begun = 0;
    }
    if (this.#tasks.length > 0) this.#schedule();
    this.#wake();
  }

  /** An error of a task could not be caught, so it would end the process. */
  #begin(task: (() => void) | undefined): void {
    // A task before it may have closed the checks.
    if (this.#isClosed) return;
    try {
      task?.();
    } catch {
      this.#miss('failed', undefined);
    }
  }

  #wake(): void {
    if (this.#waiting.length > 0 && this.#size === 0) for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #check(shadow: ShadowRequest, current: Decision): void {
    const { route = EVERY_ROUTE } = shadow.request;
    // A block is no limit: it rejects the request whatever the limits are.
    if (current.blocked !== undefined) {
      this.#count({ outcome: 'both', limit: 'block', current, candidate: undefined }, route);
      return;
    }
    // A candidate decides when the request is under way, so it counts no requests in flight (S29).
    if (!current.accepted && current.inFlight !== undefined) {
      this.#count({ outcome: 'both', limit: 'in_flight', current, candidate: undefined }, route);
      return;
    }
    this.#requests.set(current, shadow);
    const { windowSets } = this.#settings;
    this.#call(
      route,
      () =>
        after(resolveWindowSet(windowSets, shadow.request), (windowSet) =>
          this.#decide(shadow.request, this.#copyOf(windowSet)),
        ),
      (candidate) => this.#compare(shadow, current, candidate),
    );
  }

  /** Groups without limits of the candidate do not count for it. */
  #decide(request: LimitRequest, windowSet: WindowSet): MaybePromise<Decision> {
    const { windowSets, store } = this.#settings;
    const { account, route = EVERY_ROUTE, cost = 1, groups: named } = request;
    if (named === undefined && windowSet.units === undefined && typeof cost === 'number')
      return store.consume(account, route, windowSet, cost);
    const costs = costsIn(cost);
    const groups = named === undefined ? [] : accountsOf(named).filter(([name]) => windowSets.groups?.includes(name));
    return after(
      resolveAll(groups, request, (subject) => resolveWindowSet(windowSets, subject)),
      (ofGroups) =>
        decideJointly(jointRequest(account, route, costs), [
          ...unitParts(store, OF_ACCOUNT, account, route, windowSet, costs),
          ...groups.flatMap(([name, group], i) =>
            unitParts(store, name, group, route, this.#copyOf(ofGroups[i] as WindowSet), costs),
          ),
        ]),
    );
  }

  /**
   * A store can write to the numbers of a window set, and the limits in force may share the source of window sets.
   */
  #copyOf(windowSet: WindowSet): WindowSet {
    return getOrCreate(this.#copies, windowSet, () => withMaxes(windowSet, (max) => max));
  }

  /** @throws if the store did not return its own decision */
  #compare(shadow: ShadowRequest, current: Decision, candidate: Decision): void {
    const { account, route = EVERY_ROUTE } = shadow.request;
    const { accepted, degraded } = candidate;
    if (typeof accepted !== 'boolean' || degraded !== false) throw new TypeError('the store has not decided');
    if (candidate.account !== account || candidate.route !== route)
      throw new TypeError('the store has decided about another request');
    const rejecting = accepted ? (current.accepted ? undefined : current) : candidate;
    const limit = rejecting === undefined ? 'none' : rejecting.shown?.limit;
    if (limit !== 'none' && limit !== 'route' && limit !== 'all-methods')
      throw new TypeError('the store has not said which window rejects the request');
    const outcome = outcomeOf(current.accepted, accepted);
    if (outcome === 'onlyCandidate' && limit !== 'none') this.#tally.addNewlyRejected(account, route, limit);
    this.#count({ outcome, limit, current, candidate }, route);
    if (!accepted) return;
    shadow.candidate = candidate;
    for (const cost of shadow.finalCosts) this.#settle(candidate, cost);
  }

  #settle(candidate: Decision, cost: Cost): void {
    const { store, windowSets } = this.#settings;
    for (const [part, final] of settlementsOf(candidate, cost, windowSets.units ?? []))
      this.#call(undefined, () => store.settle(part, final));
  }

  #count(decision: ShadowDecision, route: string): void {
    this.#tally.count(decision.outcome, route);
    this.#events.emit(decision);
  }

  #miss(what: 'dropped' | 'failed', route: string | undefined): void {
    this.#tally.count(what, route);
    this.#settings.onMissed?.(what);
  }

  /** Makes one call to the store, which may throw, never answer, or answer anything. */
  #call<Reply>(route: string | undefined, send: () => Reply, onReply?: (reply: Awaited<Reply>) => void): void {
    const fail = (): void => this.#miss('failed', route);
    const read = (reply: Awaited<Reply>): void => {
      try {
        onReply?.(reply);
      } catch {
        fail();
      }
    };
    try {
      const reply = send();
      if (!isPromise(reply)) {
        read(reply as Awaited<Reply>);
        return;
      }
      // The executor also catches the error of a false promise that is read.
      const answer = new Promise<unknown>((resolve) => {
        resolve(reply);
      });
      const end = this.#calls.begin(() => {
        this.#isStuck = true;
        fail();
        this.#wake();
      });
      const ended = (then: () => void): void => {
        // Also a late answer is a sign of life.
        this.#isStuck = false;
        if (!end()) return;
        then();
        this.#wake();
      };
      answer.then(
        (value) => ended(() => read(value as Awaited<Reply>)),
        () => ended(fail),
      );
    } catch {
      fail();
    }
  }
}

function outcomeOf(isAcceptedNow: boolean, wouldBeAccepted: boolean): ShadowOutcome {
  if (isAcceptedNow) return wouldBeAccepted ? 'none' : 'onlyCandidate';
  return wouldBeAccepted ? 'onlyCurrent' : 'both';
}

/** Whether an account is in a sample. It depends on nothing else, so every process samples the same accounts. */
function isInSample(account: string, sample: number): boolean {
  return sample >= 1 || shareOf(account) < sample;
}

/** A number from 0 up to 1, evenly spread over accounts: FNV-1a, and the last steps of MurmurHash3. */
function shareOf(account: string): number {
  let hash = 0x811c9dc5;
  for (let i = Math.max(0, account.length - MAX_SAMPLED_LENGTH); i < account.length; i++)
    hash = Math.imul(hash ^ account.charCodeAt(i), 0x01000193);
  // Without these steps, accounts that differ in their last characters only would get similar numbers.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
