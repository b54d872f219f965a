import type { Decision, WindowStatus } from './decision.ts';
import type { Plan } from './plan.ts';

/** A value now, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

/** What to forget: an account, a route of every account, one route of one account, or (neither given) everything. */
export interface ResetTarget {
  readonly account?: string | undefined;
  readonly route?: string | undefined;
}

/**
 * Keeps counters and decides with them. For one history every store decides as `core/decision.ts` does; prove it with the
 * suites in `headgate/testing`.
 *
 * `account` and `route` are any strings, of any length and with any characters, and two different pairs never meet.
 * A plan comes with each call; counters are identified by (account, route, limit, duration), so another max meets the old
 * count and another duration starts fresh (S10). Callers have checked that `cost` is a positive safe integer.
 *
 * A store throws when it cannot decide; it never answers "rejected" for its own trouble.
 */
export interface LimitStore {
  /** True when no method ever returns a promise. */
  readonly synchronous: boolean;
  /** Charges every window of the plan, or none (S5), as one atomic step. */
  consume(account: string, route: string, plan: Plan, cost: number): MaybePromise<Decision>;
  /** Every window of the plan; changes nothing (S14). */
  peek(account: string, route: string, plan: Plan): MaybePromise<readonly WindowStatus[]>;
  /** Takes the decision's charge back from the instances that it came from, once (S13). Returns whether anything was. */
  refund(decision: Decision): MaybePromise<boolean>;
  /** Forgets counters (S14). */
  reset(target: ResetTarget): MaybePromise<void>;
  /** Lets go of what the store itself has opened; never of what it was given. */
  close?(): MaybePromise<void>;
}

/** A store that answers at once: `consumeSync` works with it. */
export interface SynchronousLimitStore extends LimitStore {
  readonly synchronous: true;
  consume(account: string, route: string, plan: Plan, cost: number): Decision;
  peek(account: string, route: string, plan: Plan): readonly WindowStatus[];
  refund(decision: Decision): boolean;
  reset(target: ResetTarget): void;
  close?(): void;
}
