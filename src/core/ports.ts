import type {
  AbandonCommand,
  AbandonReply,
  BeginCommand,
  BeginReply,
  ClaimRecord,
  CompleteCommand,
  CompleteReply,
  HeldCommand,
  HeldReply,
} from './claim.ts';
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

/** Which claim: the caller's application, and the idempotency key that it gave (I2). Any strings; two different pairs never meet. */
export interface ClaimId {
  /** Whose keys these are: those of two scopes never meet (I2). */
  readonly scope: string;
  /** The idempotency key as the client gave it. */
  readonly key: string;
}

/** A claim as an operator sees it. */
export interface ClaimView extends Omit<ClaimRecord, 'leaseUntil' | 'keptUntil'> {
  /** Milliseconds until the lease is over; 0 where it is, or where nobody holds one. */
  readonly leaseMs: number;
  /** Milliseconds until the record is forgotten. */
  readonly keptMs: number;
}

/**
 * Keeps claims on idempotency keys. Each command is one atomic step with the store's own clock, exactly as `core/claim.ts` has it; prove
 * it with `claimStoreSuite` in `headgate/testing`.
 *
 * A claim in progress is never evicted (I13). A store with no room left throws `StoreFullError`, and throws when it could not tell whether
 * a command was carried out: its sender repeats it with the same token, or abandons.
 */
export interface ClaimStore {
  /** True when no method ever returns a promise. */
  readonly synchronous: boolean;
  /**
   * Claims a key. With `dispatch`, a store whose commands may land late gives each a deadline in its own time, and where it cannot, leaves the
   * mark unset: the reply says which.
   */
  begin(id: ClaimId, command: BeginCommand): MaybePromise<BeginReply>;
  /** The owner goes on: a new lease. */
  extend(id: ClaimId, command: HeldCommand): MaybePromise<HeldReply>;
  /** The owner is about to do what cannot be undone: from here on the claim, without an outcome, is an orphan. */
  dispatch(id: ClaimId, command: HeldCommand): MaybePromise<HeldReply>;
  /** The outcome, kept for the retention. */
  complete(id: ClaimId, command: CompleteCommand): MaybePromise<CompleteReply>;
  /** Gives the key back: nothing has happened. */
  abandon(id: ClaimId, command: AbandonCommand): MaybePromise<AbandonReply>;
  /** For an operator; changes nothing. */
  inspect(id: ClaimId): MaybePromise<ClaimView | undefined>;
  /** Lets go of what the store itself has opened; never of what it was given. */
  close?(): MaybePromise<void>;
}
