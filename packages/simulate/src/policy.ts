import type { Cost, Decision, UnitCosts } from 'headgate';
import { createLimiter, isHeadgateError, type Limiter, type Limits } from 'headgate';
import { checkOptions, createUnshardedStore, isWindowSetSource, WindowSets } from 'headgate/internal';
import type { Clock, Groups, WindowSetSource } from 'headgate/limits';
import type { TraceRequest } from './trace.ts';

/** The limits that a trace is judged by. */
export interface Policy {
  readonly limits: Limits | WindowSetSource;
  /** Provider and customer's plan of an account. If it returns undefined, the values of the trace count. */
  readonly account?: ((account: string) => AccountLimits | undefined) | undefined;
  /** Lane of a route (S28), for requests of the trace without one. Undefined: no lane. */
  readonly lane?: ((route: string) => string | undefined) | undefined;
  /** Groups of an account on a route (S31), for requests of the trace without any. Undefined: none. */
  readonly groups?: ((account: string, route: string) => Groups | undefined) | undefined;
}

/** Selects the limits of an account. */
export interface AccountLimits {
  readonly provider?: string | undefined;
  readonly plan?: string | undefined;
}

/** What of a request the limits do not have. */
export type UnknownName = 'unknown_plan' | 'unknown_lane';

/** The largest that a memory store can be: only accounts with active windows take memory. */
const MAX_KEYS = 16_000_000;

/** A clock that the trace moves. */
export class TraceClock implements Clock {
  #now = 0;

  now(): number {
    return this.#now;
  }

  /** The clock never goes back: a line that came too late is judged at the time of the latest one. */
  moveTo(ms: number): void {
    if (ms > this.#now) this.#now = ms;
  }
}

/** One policy: a process's limiter and store, on the clock of the trace. */
export class SimulatedPolicy {
  readonly #limiter: Limiter;
  readonly #account: Policy['account'];
  readonly #units: readonly string[];
  readonly #lane: Policy['lane'];
  readonly #groups: Policy['groups'];
  readonly #groupNames: readonly string[];

  /** @throws LimitError, OptionError */
  constructor(policy: Policy, place: string, clock: Clock) {
    checkOptions(policy, ['limits', 'account', 'lane', 'groups'], place);
    const { limits, account, lane, groups } = policy;
    const windowSets = isWindowSetSource(limits) ? limits : new WindowSets(limits, `${place}.limits`);
    const store = createUnshardedStore({ maxKeys: MAX_KEYS, clock });
    this.#limiter = createLimiter({ store, limits: windowSets, validate: false });
    this.#account = account;
    this.#units = ['requests', ...(windowSets.units ?? [])];
    this.#lane = lane;
    this.#groups = groups;
    this.#groupNames = windowSets.groups ?? [];
  }

  /** Selects the limits that apply to the request. */
  provider(request: TraceRequest): string | undefined {
    return (this.#account?.(request.account) ?? request).provider;
  }

  /** Says so if the customer's plan or the lane of the request is missing in the limits. */
  decide(request: TraceRequest): Decision | UnknownName {
    const { account, route, cost, lane = this.#lane?.(route) } = request;
    const groups = this.#knownGroups(request.groups ?? this.#groups?.(account, route));
    const { provider, plan } = this.#account?.(account) ?? request;
    try {
      return this.#limiter.consumeSync({ account, route, provider, plan, lane, groups, cost: this.#known(cost) });
    } catch (error) {
      for (const code of ['unknown_plan', 'unknown_lane'] as const) if (isHeadgateError(error, code)) return code;
      throw error;
    }
  }

  /** Groups without limits in this policy do not count. */
  #knownGroups(groups: Groups | undefined): Groups | undefined {
    if (groups === undefined || this.#groupNames.length === 0) return undefined;
    return Object.fromEntries(Object.entries(groups).filter(([name]) => this.#groupNames.includes(name)));
  }

  settle(decision: Decision, cost: Cost): void {
    // The store is synchronous, so this is done when the call returns.
    void this.#limiter.settle(decision, this.#known(cost));
  }

  /** The cost without units that these limits do not count: the other limits may. */
  #known<Given extends Cost | undefined>(cost: Given): Given | UnitCosts {
    if (typeof cost !== 'object') return cost;
    return Object.fromEntries(Object.entries(cost).filter(([unit]) => this.#units.includes(unit)));
  }
}
