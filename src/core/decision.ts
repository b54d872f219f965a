import type { LimitName } from './limit.ts';
import type { Plan, PlanWindow } from './plan.ts';
import { add, type Counters, fits, isOver, NEVER, SLOTS_PER_WINDOW } from './window.ts';

/** One window at one moment; a copy, never a live record (S19). */
export interface WindowStatus {
  readonly limit: LimitName;
  /** Most that fits into the window. */
  readonly max: number;
  /** `max` less what is counted, never negative (S7). */
  readonly remaining: number;
  /** Milliseconds until the active instance is over; without one, or with `max` 0, the whole duration for a rejection (S9), 0 for a peek. */
  readonly resetMs: number;
  readonly durationMs: number;
  /** When the active instance started, on the store's clock, in milliseconds; undefined without one. */
  readonly startedAt: number | undefined;
}

/** What {@link evaluate} returns when every window has room. */
export const FITS = -1;

/**
 * The rule of the whole product: the windows of `plan`, in order, each with room for `cost`? (S2, S11)
 * Changes nothing, so a rejection cannot have charged anything (S5); {@link charge} is the second half.
 * @param at index in `counters` of the plan's first window
 * @returns index of the first window that does not fit, or {@link FITS}
 */
export function evaluate(plan: Plan, counters: Counters, at: number, cost: number, now: number): number {
  const { maxes, durations } = plan;
  for (let i = 0, place = at; i < maxes.length; i++, place += SLOTS_PER_WINDOW) {
    if (!fits(counters, place, maxes[i] as number, durations[i] as number, cost, now)) return i;
  }
  return FITS;
}

/** Counts `cost` in every window that {@link evaluate} has just let pass (S5). Returns whether an instance was started. */
export function charge(plan: Plan, counters: Counters, at: number, cost: number, now: number): boolean {
  const { durations } = plan;
  let started = false;
  for (let i = 0, place = at; i < durations.length; i++, place += SLOTS_PER_WINDOW) {
    if (add(counters, place, durations[i] as number, cost, now)) started = true;
  }
  return started;
}

/**
 * Accepted or rejected, and by what. Immutable (S19); `shown` and `trace` are made when they are read, from numbers copied at the decision.
 * Refund it with `limiter.refund(decision)`.
 */
export class Decision {
  // Only declared: a field that is also defined is written twice, and there is one of these for every request.
  declare readonly accepted: boolean;
  declare readonly account: string;
  declare readonly route: string;
  /** What the request costs, or would have (S11). */
  declare readonly cost: number;
  /** When it was decided, on the store's clock, in milliseconds. */
  declare readonly decidedAt: number;
  /** True where the store could not be asked in time and the failure policy decided: no header is made of it (S17). */
  declare readonly degraded: boolean;
  /** Every window of the plan as configured, checked or not. */
  declare readonly plan: Plan;
  readonly #rejectedBy: number;
  readonly #counters: ArrayLike<number>;
  #refundable: boolean;

  /**
   * @param rejectedBy index in `plan.windows`, or {@link FITS}
   * @param counters of every window that was checked, after the charge; owned by the decision from now on
   */
  constructor(
    account: string,
    route: string,
    plan: Plan,
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
    this.plan = plan;
    this.#rejectedBy = rejectedBy;
    this.#counters = counters;
    this.#refundable = this.accepted;
  }

  /** The one window that headers show: the last of the plan, or the one that rejected; undefined without a plan (S6). */
  get shown(): WindowStatus | undefined {
    const index = this.accepted ? this.plan.windows.length - 1 : this.#rejectedBy;
    return index < 0 ? undefined : this.#status(index);
  }

  /** Every window that was checked, in order; none after the one that rejected (S2). */
  get trace(): readonly WindowStatus[] {
    const checked = this.accepted ? this.plan.windows.length : this.#rejectedBy + 1;
    return Array.from({ length: checked }, (_, index) => this.#status(index));
  }

  /** Rejected, and waiting will not help: the cost is more than the window's max (S9, S11). */
  get impossible(): boolean {
    return !this.accepted && this.cost > (this.plan.windows[this.#rejectedBy] as PlanWindow).max;
  }

  /** For stores: true for the first call on an accepted decision, then never again, so that a charge is taken back once (S13). */
  takeRefund(): boolean {
    const first = this.#refundable;
    this.#refundable = false;
    return first;
  }

  /** The same decision, marked as the failure policy's. */
  asDegraded(): Decision {
    const { account, route, cost, decidedAt } = this;
    return new Decision(account, route, this.plan, cost, decidedAt, this.#rejectedBy, this.#counters, true);
  }

  /** Everything of it that can be read, for logs. */
  toJSON(): object {
    const { accepted, degraded, account, route, cost, decidedAt, shown, trace, impossible } = this;
    return { accepted, degraded, account, route, cost, decidedAt, shown, trace, impossible };
  }

  #status(index: number): WindowStatus {
    const window = this.plan.windows[index] as PlanWindow;
    return windowStatus(window, this.#counters, index * SLOTS_PER_WINDOW, this.decidedAt, window.durationMs);
  }
}

/** The window at `counters[at]` as it stands at `now`. `idleResetMs` is the `resetMs` of a window without an active instance. */
export function windowStatus(
  window: PlanWindow,
  counters: ArrayLike<number>,
  at: number,
  now: number,
  idleResetMs: number,
): WindowStatus {
  const { limit, max, durationMs } = window;
  const startedAt = counters[at] ?? NEVER;
  if (isOver(startedAt, durationMs, now)) {
    return { limit, max, remaining: max, resetMs: idleResetMs, durationMs, startedAt: undefined };
  }
  const remaining = Math.max(0, max - (counters[at + 1] as number));
  const resetMs = max === 0 ? durationMs : startedAt + durationMs - now;
  return { limit, max, remaining, resetMs, durationMs, startedAt };
}
