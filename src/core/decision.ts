import { OptionError } from '../base/errors.ts';
import type { Block } from './block.ts';
import type { LimitName } from './limit.ts';
import type { InFlightStatus } from './slot.ts';
import { REQUESTS, type UnitCosts } from './unit.ts';
import { add, type Counters, fits, isOver, NEVER, SLOTS_PER_WINDOW } from './window.ts';
import type { NamedWindow, WindowSet } from './window-set.ts';

/** The state of one window at one moment. A copy, never a live record (S19). */
export interface WindowStatus {
  readonly limit: LimitName;
  /** Total cost that fits into the window. */
  readonly max: number;
  /** `max` minus the count, never negative (S7). */
  readonly remaining: number;
  /**
   * With an active instance: milliseconds until it is over, or the whole duration if `max` is 0 (S9). Without one: the
   * whole duration for a rejection, 0 for a peek.
   */
  readonly resetMs: number;
  readonly durationMs: number;
  /** What the window counts; absent if it counts requests (S33). */
  readonly unit?: string;
  /** When the active instance started, in milliseconds on the store's clock; undefined without one. */
  readonly startedAt: number | undefined;
  /** The group whose window it is; absent if it is the account's (S31). */
  readonly group?: string | undefined;
}

/** A part of a request with groups or units, and the decision about it alone (S31, S33). */
export interface DecisionPart {
  /** `account`, or the name of a group. */
  readonly subject: string;
  readonly decision: Decision;
}

/**
 * Under this name a limiter with receipts adds what issues them, also if two copies of the package are loaded (ESM and
 * CJS). Other decisions are without it.
 */
export const ISSUER: unique symbol = /* @__PURE__ */ Symbol.for('headgate.decision.issuer') as never;

const NO_RECEIPTS =
  'must be given to createLimiter, as createReceipts({ secret }): a receipt without a signature could be made by a client, to refund its requests';

/** The result of {@link evaluate} when the request fits every window. */
export const FITS = -1;

/**
 * The rule of the whole product: checks the windows of `windowSet` in order for room for `cost` (S2, S11).
 * It changes nothing, so that a rejected request never charges anything (S5). {@link charge} is the second half.
 * @param at index in `counters` of the window set's first window
 * @returns index of the first window without room, or {@link FITS}
 */
export function evaluate(windowSet: WindowSet, counters: Counters, at: number, cost: number, now: number): number {
  const { maxes, durations } = windowSet;
  for (let i = 0, place = at; i < maxes.length; i++, place += SLOTS_PER_WINDOW) {
    if (!fits(counters, place, maxes[i] as number, durations[i] as number, cost, now)) return i;
  }
  return FITS;
}

/**
 * How many of `requests` equal requests fit every window, one after the other: what {@link evaluate} and {@link charge}
 * come to if they are called for each of them.
 */
export function countFitting(
  windowSet: WindowSet,
  counters: Counters,
  at: number,
  cost: number,
  requests: number,
  now: number,
): number {
  const { maxes, durations } = windowSet;
  let fitting = requests;
  for (let i = 0, place = at; i < maxes.length; i++, place += SLOTS_PER_WINDOW) {
    const count = isOver(counters[place] as number, durations[i] as number, now) ? 0 : (counters[place + 1] as number);
    fitting = Math.min(fitting, Math.max(0, Math.floor(((maxes[i] as number) - count) / cost)));
  }
  return fitting;
}

/** Adds `cost` to every window, once {@link evaluate} returned FITS (S5). Returns whether an instance was started. */
export function charge(windowSet: WindowSet, counters: Counters, at: number, cost: number, now: number): boolean {
  const { durations } = windowSet;
  let started = false;
  for (let i = 0, place = at; i < durations.length; i++, place += SLOTS_PER_WINDOW) {
    if (add(counters, place, durations[i] as number, cost, now)) started = true;
  }
  return started;
}

declare global {
  // As in TypeScript's library and in the types of Node: not every program has one of them.
  interface SymbolConstructor {
    readonly dispose: unique symbol;
    readonly asyncDispose: unique symbol;
  }
}

/**
 * Whether a request was accepted, and if not, which window rejected it. Immutable (S19). `shown` and `trace` are
 * computed when they are read, from numbers that were copied when the store decided. Refund it with
 * `limiter.refund(decision)`; `limiter.settle(decision, cost)` corrects its cost.
 */
export class Decision {
  // Only declared, because a field that is also defined is written twice, and there is a Decision for every request.
  declare readonly accepted: boolean;
  declare readonly account: string;
  declare readonly route: string;
  /** The cost of the request in requests, also of a rejected one (S11). Of other units: see `costs`. */
  declare readonly cost: number;
  /** When the store decided, in milliseconds on the store's clock. */
  declare readonly decidedAt: number;
  /**
   * True if the failure policy decided, because the store failed or did not answer in time. Then no rate-limit header
   * is sent (S17).
   */
  declare readonly degraded: boolean;
  /** Every configured window, whether it was checked or not. */
  declare readonly windowSet: WindowSet;
  /**
   * `using decision = await limiter.consume(…)` calls `limiter.release(decision)` at the end of its scope (S29). Only on a
   * platform that has the symbol.
   */
  declare readonly [Symbol.dispose]: () => void;
  /** The same for `await using`, which waits for the store. */
  declare readonly [Symbol.asyncDispose]: () => Promise<void>;
  readonly #rejectedBy: number;
  readonly #counters: ArrayLike<number>;
  #isUnsettled: boolean;

  /**
   * @param rejectedBy index in `windowSet.windows`, or {@link FITS}
   * @param counters of every window that was checked, after the charge. The decision owns them from now on.
   */
  constructor(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    decidedAt: number,
    rejectedBy: number,
    counters: ArrayLike<number>,
    degraded = false,
  ) {
    this.accepted = rejectedBy === FITS;
    this.account = account;
    this.route = route;
    this.cost = cost;
    this.decidedAt = decidedAt;
    this.degraded = degraded;
    this.windowSet = windowSet;
    this.#rejectedBy = rejectedBy;
    this.#counters = counters;
    this.#isUnsettled = this.accepted;
  }

  /**
   * The window that headers show: the one that rejected, else the window set's last, or the one that the window set's
   * `shows` chooses. Undefined without windows, and if a block rejected (S6).
   */
  get shown(): WindowStatus | undefined {
    if (this.accepted && this.windowSet.shows === 'least') return this.#leastOfLimits();
    const index = this.accepted ? this.windowSet.windows.length - 1 : this.#rejectedBy;
    return index < 0 ? undefined : this.#status(index);
  }

  /** Every window that was checked, in order. Windows after the rejecting window are not included (S2). */
  get trace(): readonly WindowStatus[] {
    const checked = this.accepted ? this.windowSet.windows.length : this.#rejectedBy + 1;
    const trace: WindowStatus[] = [];
    // A loop, because Array.from takes several times as long, and a gateway reads the trace of every decision.
    for (let index = 0; index < checked; index++) trace.push(this.#status(index));
    return trace;
  }

  /** True if waiting will not help, because the cost is more than the max of the window that rejected (S9, S11). */
  get impossible(): boolean {
    return !this.accepted && this.cost > (this.windowSet.windows[this.#rejectedBy] as NamedWindow).max;
  }

  /**
   * Whose limit rejected the request: `account`, or the name of a group (S31). Undefined if the request was accepted.
   */
  get rejectedBy(): string | undefined {
    return this.accepted ? undefined : 'account';
  }

  /** The groups that the request named: an id by name (S31). Undefined without groups, and for a receipt. */
  get groups(): Readonly<Record<string, string>> | undefined {
    return undefined;
  }

  /**
   * The decisions about each unit of the account and of each group, for a request with groups or units (S31, S33);
   * undefined without.
   */
  get parts(): readonly DecisionPart[] | undefined {
    return undefined;
  }

  /** The cost of the request per unit: `{ requests: 1, tokens: 800 }` (S33). */
  get costs(): UnitCosts {
    return { [REQUESTS]: this.cost };
  }

  /** The lane of the request (S28): each max is the share of that lane. Undefined without a lane. */
  get lane(): string | undefined {
    return this.windowSet.lane;
  }

  /** The block that rejected the request before any window was checked (S21). Undefined for any other decision. */
  get blocked(): Block | undefined {
    return undefined;
  }

  /**
   * How many requests were in flight, this one included, of the limit that has the least room for more; of a rejection,
   * of the limit that had no room (S29). Undefined if no limit has `inFlight`, or if something else rejected the request.
   */
  get inFlight(): InFlightStatus | undefined {
    return undefined;
  }

  /**
   * Whether the process decided by itself, from units that it had charged in the store before (S32). What other
   * processes used meanwhile is not in `remaining`.
   */
  get leased(): boolean {
    return false;
  }

  /**
   * A text with which another process settles or refunds this decision: `limiter.settle(receipt, cost)` (S37). It is
   * URL-safe, at most 8 KiB long, signed, and worthless once the windows that the decision charged are over. Reading it
   * again returns the same text.
   * @throws OptionError if the limiter has no `receipts`, or if account and route are too long
   */
  get receipt(): string {
    const { [ISSUER]: issue } = this as { [ISSUER]?: (decision: Decision) => string };
    if (issue === undefined) throw new OptionError('receipts', undefined, NO_RECEIPTS);
    return issue(this);
  }

  /** For receipts: whether it was accepted, and its charge was not settled. */
  get isUnsettled(): boolean {
    return this.#isUnsettled;
  }

  /** For stores: true for the first call on an accepted decision only, so that a charge is settled once (S13). */
  takeCharge(): boolean {
    const first = this.#isUnsettled;
    this.#isUnsettled = false;
    return first;
  }

  /** For stores: call it after {@link takeCharge} if nothing was changed, so that the decision can still be settled. */
  returnCharge(): void {
    this.#isUnsettled = true;
  }

  /** Returns the same decision, marked as made by the failure policy. */
  asDegraded(): Decision {
    const { account, route, cost, decidedAt } = this;
    return new Decision(account, route, this.windowSet, cost, decidedAt, this.#rejectedBy, this.#counters, true);
  }

  /** All readable fields, for logs. */
  toJSON(): object {
    const { accepted, degraded, leased, account, route, lane, cost, decidedAt, shown, trace, impossible } = this;
    const { blocked, inFlight } = this;
    const rest = { lane, cost, decidedAt, shown, trace, impossible, blocked, inFlight };
    return { accepted, degraded, leased, account, route, ...rest };
  }

  /** Of the last window of each limit the one with the least remaining; if they are equal, the route's. */
  #leastOfLimits(): WindowStatus | undefined {
    const { routeWindows, windows } = this.windowSet;
    const [ofRoute, last] = [routeWindows - 1, windows.length - 1]
      .filter((at) => at >= 0)
      .map((at) => this.#status(at));
    return last !== undefined && last.remaining < (ofRoute as WindowStatus).remaining ? last : ofRoute;
  }

  #status(index: number): WindowStatus {
    const window = this.windowSet.windows[index] as NamedWindow;
    return windowStatus(window, this.#counters, index * SLOTS_PER_WINDOW, this.decidedAt, window.durationMs);
  }
}

/** State of the window at `counters[at]`. `idleResetMs` is the `resetMs` if no instance of the window is active. */
export function windowStatus(
  window: NamedWindow,
  counters: ArrayLike<number>,
  at: number,
  now: number,
  idleResetMs: number,
): WindowStatus {
  const { limit, max, durationMs, unit } = window;
  const startedAt = counters[at] ?? NEVER;
  const isActive = !isOver(startedAt, durationMs, now);
  const status: WindowStatus = isActive
    ? {
        limit,
        max,
        remaining: Math.max(0, max - (counters[at + 1] as number)),
        resetMs: max === 0 ? durationMs : startedAt + durationMs - now,
        durationMs,
        startedAt,
      }
    : { limit, max, remaining: max, resetMs: idleResetMs, durationMs, startedAt: undefined };
  return unit === undefined ? status : { unit, ...status };
}
