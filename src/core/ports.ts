import type { MaybePromise, Synchronous } from '../base/maybe-promise.ts';
import type { Block, BlockTarget, FreshStart } from './block.ts';
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
  NotedStep,
} from './claim.ts';
import type { CooldownCommand, CooldownReply } from './cooldown.ts';
import type { Decision, WindowStatus } from './decision.ts';
import type { Slot, SlotReply } from './slot.ts';
import type { WindowSet } from './window-set.ts';

/** Counters to delete: of an account, of a route of every account, of one route of one account, or (neither) all. */
export interface ResetTarget {
  readonly account?: string | undefined;
  readonly route?: string | undefined;
}

/** Options of `ready()` of a store. */
export interface ReadyOptions {
  /**
   * Longest wait for the first answer of the server, in milliseconds.
   * @default 10_000
   */
  readonly timeoutMs?: number | undefined;
  /** Ends the wait, with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What a store charged for equal requests of one account and route. */
export interface LeaseGrant {
  /** The decision about the first of the requests, as if it were the only one. */
  readonly decision: Decision;
  /**
   * How many of the requests fit and were charged, the first one included. 0 if the decision is a rejection, and 1 if it
   * is degraded and accepted.
   */
  readonly granted: number;
}

/** The largest number of requests that one call of `lease` charges. */
export const MAX_LEASED_REQUESTS = 1_000_000_000;

/**
 * Stores counters and decides with them. For the same sequence of calls every store decides as `core/decision.ts` does;
 * prove it with the suites in `headgate/testing`.
 *
 * `account` and `route` are any strings, of any length and with any characters. Two different pairs never share
 * counters. Each call passes a window set. Counters are identified by (account, route, limit, duration): a changed max
 * applies to the existing count, and a changed duration starts a new count (S10). The caller checked that `cost` is
 * a positive safe integer.
 *
 * A store throws if it cannot decide. It never returns a rejection because of its own failure.
 */
export interface LimitStore {
  /** True if no method ever returns a promise. */
  readonly synchronous: boolean;
  /**
   * Two stores with the same object here share their counters, as two stores with one Redis client and prefix do.
   * @default the store itself
   */
  readonly identity?: object;
  /** Charges every window of the window set or none (S5), as one atomic step. */
  consume(account: string, route: string, windowSet: WindowSet, cost: number): MaybePromise<Decision>;
  /** Returns the state of every window of the window set. Changes nothing (S14). */
  peek(account: string, route: string, windowSet: WindowSet): MaybePromise<readonly WindowStatus[]>;
  /**
   * Changes the count of each window instance that the decision charged, from `decision.cost` to `cost`, once
   * (S13). 0 is a refund. The caller checked that `cost` is a safe integer, 0 or more.
   * @returns whether one of these instances was still active
   */
  settle(decision: Decision, cost: number): MaybePromise<boolean>;
  /**
   * Undoes an accepted decision (S31): does what `settle` does with a cost of 0, and also removes each instance that
   * started with the decision (`startedAt` is `decidedAt`) and counts nothing else, so that the counters are as they were
   * before it. Calls in one turn of the event loop can be sent together.
   * @default `settle(decision, 0)`, after which an instance that the decision started stays active, with a count of 0
   */
  undo?(decision: Decision): MaybePromise<boolean>;
  /**
   * Returns a rejection that is certain without asking the server, as `consume` would return it (S20); undefined if
   * `consume` must be called.
   */
  knownRejection?(account: string, route: string, windowSet: WindowSet, cost: number): Decision | undefined;
  /**
   * Does what `settle` does, at most once per receipt, whichever process calls it (S37). In the same atomic step it
   * remembers the receipt, until the last of the instances that it changed is over. With a receipt that it remembers, it
   * changes nothing and returns false. The memory is bounded: without room it throws `StoreFullError`, and changes
   * nothing.
   * @param receipt 22 letters, digits, `_` or `-`, which no other decision has
   * @param until a time on the store's clock. If it is given, the call changes nothing after it and returns false, so
   * the store need not remember the receipt for longer. A store that ignores it remembers more than it must
   */
  settleOnce?(decision: Decision, cost: number, receipt: string, until?: number): MaybePromise<boolean>;
  /**
   * Does what so many calls of `consume` in a row do, as one atomic step (S32): charges as many of the equal requests as
   * fit every window. The process may then grant them by itself, and settles what it did not use by `settleOnce`, with a
   * decision that costs as much. A store that implements it implements `settleOnce`, too. Calls of `settleOnce` in one
   * turn of the event loop can be sent together.
   * @param count of requests, from 1 to 1,000,000,000. The caller checked it
   */
  lease?(account: string, route: string, windowSet: WindowSet, cost: number, count: number): MaybePromise<LeaseGrant>;
  /**
   * Adds the cost to every window of the window set as one atomic step, also if it does not fit (S35). In a window
   * without an active instance, a new one starts. No count exceeds `Number.MAX_SAFE_INTEGER`. Blocks do not matter.
   * @returns every window after that, as `peek` returns it
   */
  charge?(account: string, route: string, windowSet: WindowSet, cost: number): MaybePromise<readonly WindowStatus[]>;
  /**
   * Takes a slot for a request in flight, or renews its lease, as one atomic step (S29). In each limit that counts it:
   * removes the slots whose lease is over, and keeps the slot if it is there. If every limit without it has room, it is
   * added to them; else to none. A store implements both methods of slots or none.
   * @param leaseMs how long the slot lasts from now on, in milliseconds, unless it is renewed or released: at most 24
   * hours. The caller checked it, and the limits: integers from 0 to 1,000,000. With 0, the slot is only counted
   */
  holdSlot?(slot: Slot, leaseMs: number): MaybePromise<SlotReply>;
  /** Gives a slot back. Without it, nothing is changed. */
  releaseSlot?(slot: Slot): MaybePromise<void>;
  /** Deletes counters (S14). Blocks and slots stay. */
  reset(target: ResetTarget): MaybePromise<void>;
  /**
   * Blocks an account, or one of its routes (S21). It replaces the block of the same target. `consume` then returns a
   * `BlockedDecision`, except for a window set without windows. A store implements all three methods of blocks or none.
   * The caller checked the block.
   * @param fresh if it is given, the same atomic step deletes the counters that `reset(target)` deletes
   */
  block?(target: BlockTarget, block: Block, fresh?: FreshStart): MaybePromise<void>;
  /** Lifts the block of exactly this target, if there is one. */
  unblock?(target: BlockTarget): MaybePromise<void>;
  /**
   * Returns the block that rejects requests of the target, and how much longer; of two blocks, the block that ends
   * later. Undefined without one.
   */
  blocked?(target: BlockTarget): MaybePromise<Block | undefined>;
  /**
   * Starts, tries or ends the cooldown of exactly this target, as `core/cooldown.ts` says, in one atomic step (S30). Its
   * block is a block like any other. The mark beside it rejects no request. A store that implements it implements blocks,
   * too. The caller checked the command.
   */
  cooldown?(target: BlockTarget, command: CooldownCommand): MaybePromise<CooldownReply>;
  /** Waits until the store's server answers, and then decides without delay. Absent if there is no server. */
  ready?(options?: ReadyOptions): MaybePromise<void>;
  /** Closes the store's own resources, never an object that was passed to it. */
  close?(): MaybePromise<void>;
}

/** A store that never returns a promise. `consumeSync` needs such a store. */
export interface SynchronousLimitStore extends Synchronous<LimitStore> {
  readonly synchronous: true;
  /** Like `lease` of {@link LimitStore}, without a promise. */
  lease?(account: string, route: string, windowSet: WindowSet, cost: number, count: number): LeaseGrant;
  /** Like `undo` of {@link LimitStore}, without a promise. */
  undo?(decision: Decision): boolean;
  /** Like `knownRejection` of {@link LimitStore}. */
  knownRejection?(account: string, route: string, windowSet: WindowSet, cost: number): Decision | undefined;
  /** Like `holdSlot` of {@link LimitStore}, without a promise. */
  holdSlot?(slot: Slot, leaseMs: number): SlotReply;
  /** Like `releaseSlot` of {@link LimitStore}, without a promise. */
  releaseSlot?(slot: Slot): void;
  /** Like `cooldown` of {@link LimitStore}, without a promise. */
  cooldown?(target: BlockTarget, command: CooldownCommand): CooldownReply;
}

/** Identifies a claim by two strings of any content (I2). Two different pairs never share a claim. */
export interface ClaimId {
  /** Whose key it is, e.g. the client's application. Equal keys of two scopes are different claims (I2). */
  readonly scope: string;
  /** The idempotency key as the client sent it. */
  readonly key: string;
}

/** A claim as an operator sees it. */
export interface ClaimView extends Omit<ClaimRecord, 'leaseUntil' | 'keptUntil'> {
  /** Milliseconds until the lease expires; 0 if it expired, or if the claim is without an owner. */
  readonly leaseMs: number;
  /** Milliseconds until the retention is over; 0 if the record stays because its outcome is unknown (I9). */
  readonly keptMs: number;
}

/** A claim of a list. Owner, fingerprint and value are left out: they are secrets, or a client's data. */
export interface ListedClaim extends ClaimId, Omit<ClaimView, 'owner' | 'fingerprint' | 'result'> {
  /** Status of the outcome; undefined without one. */
  readonly status: string | undefined;
  /** Bytes of the stored value in UTF-8; undefined without one. */
  readonly valueBytes: number | undefined;
}

/** A page of a scan over the keys of a claim store. */
export interface ClaimPage {
  /** Perhaps none, although there is a next page. */
  readonly claims: readonly ListedClaim[];
  /** Number of keys of claims that were looked at, including those whose claims expired. */
  readonly looked: number;
  /** Cursor of the next page; undefined at the end. */
  readonly next: string | undefined;
}

/**
 * Stores claims on idempotency keys. Each command is one atomic step on the store's own clock and does exactly what
 * `core/claim.ts` does; prove it with `claimStoreSuite` in `headgate/testing`.
 *
 * A claim in progress is never evicted (I13). The record of an unknown outcome stays after its retention, until it is
 * resolved, or until its own scope needs the room. A full store throws `StoreFullError`. A store also throws if it does not
 * know whether a command was executed; the sender then repeats the command with the same token, or abandons the claim.
 */
export interface ClaimStore {
  /** True if no method ever returns a promise. */
  readonly synchronous: boolean;
  /**
   * The steps for which the store writes rows of the user, exactly once, in the step that a command with a note makes. A
   * command that repeats a step, or does not make it, writes none. Absent: the store takes no notes.
   */
  readonly notes?: readonly NotedStep[] | undefined;
  /**
   * Claims a key. If `dispatch` is set and commands can arrive late, the store gives the command a deadline on the
   * store's clock. If it cannot, it claims without dispatching. The reply says whether the claim is dispatched.
   */
  begin(id: ClaimId, command: BeginCommand): MaybePromise<BeginReply>;
  /** Renews the owner's lease. */
  extend(id: ClaimId, command: HeldCommand): MaybePromise<HeldReply>;
  /**
   * Records that the effect may happen from now on. If the lease expires without an outcome, the claim is an
   * orphan.
   */
  dispatch(id: ClaimId, command: HeldCommand): MaybePromise<HeldReply>;
  /** Stores the outcome for the retention. */
  complete(id: ClaimId, command: CompleteCommand): MaybePromise<CompleteReply>;
  /** Releases the key, because the effect did not happen. */
  abandon(id: ClaimId, command: AbandonCommand): MaybePromise<AbandonReply>;
  /** Returns the claim as an operator sees it; undefined without a record. Changes nothing. */
  inspect(id: ClaimId): MaybePromise<ClaimView | undefined>;
  /**
   * Returns a page of a scan over all keys, so that an operator finds a claim without its key. Changes nothing. A claim
   * that is in the store during the whole scan is on at least one page. Any other claim may be on one.
   * @param cursor `next` of the page before; undefined for the first page. A store may answer an old cursor with the
   * beginning of the scan, and throws `OptionError` for a text that it never makes
   * @param count how many keys to look at, from 1 to 1,000. The caller checked it. A store that can only read its
   * keys in groups may look at a few more
   */
  list?(cursor: string | undefined, count: number): MaybePromise<ClaimPage>;
  /**
   * Calls the listener with each claim that the store forgot although its outcome is unknown, because its scope needed
   * the room (I13). Returns a function that stops this. Absent if the store never does that.
   */
  onForgotten?(listener: (id: ClaimId) => void): () => void;
  /** Waits until the store's server answers. Absent if there is no server. */
  ready?(options?: ReadyOptions): MaybePromise<void>;
  /** Closes the store's own resources, never an object that was passed to it. */
  close?(): MaybePromise<void>;
}
