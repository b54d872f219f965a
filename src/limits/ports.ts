import type { Logger } from '../base/logger.ts';
import type { AdjustTarget } from '../core/adjustment.ts';
import type { Block, BlockTarget } from '../core/block.ts';
import type { Decision, WindowStatus } from '../core/decision.ts';
import type { LimitInput } from '../core/limit.ts';
import type { LimitStore, ResetTarget } from '../core/ports.ts';
import type { InFlightStatus } from '../core/slot.ts';
import type { Cost } from '../core/unit.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { Leases } from '../leases/ports.ts';
import type { BlockOptions } from './blocks.ts';
import type { Groups } from './groups.ts';
import type { InFlightOptions } from './slots.ts';
import type { Usage, UsageSubject } from './usage.ts';
import type { Limits, Subject, WindowSetSource } from './window-set-source.ts';

/** Writes and reads the receipts of decisions, for the option `receipts` of `createLimiter`. */
export interface Receipts {
  /** @internal */
  read(text: string): ReadReceipt;
  /** @internal */
  addTo(limiter: Limiter): Limiter;
}

/** The content of a receipt, once its signature was checked. */
export interface ReadReceipt {
  /** Undefined if the decision charged nothing that could be settled. */
  readonly decision: Decision | undefined;
  /** The counters that it charged, such as `redis headgate`; undefined if they have no name. */
  readonly counters?: string | undefined;
}

/** Options of `createLimiter`. */
export interface LimiterOptions {
  /**
   * Where counters are stored, e.g. `createRedisStore(client)`. {@link Limiter.close} closes it. Leave it out for the
   * default; undefined is an error.
   * @default a memory store, which counts for this process alone
   */
  readonly store?: LimitStore;
  /**
   * A list of windows, which count all requests of an account together; limits per route; limits in layers; a function
   * that returns the limits of a subject, or a promise of them; or a source of window sets, such as
   * `createSharedLimits()` returns.
   */
  readonly limits: Limits | WindowSetSource;
  /**
   * What windows can count beside requests, such as `['tokens']` (S33), in addition to the units in `limits`: those of a
   * function `limits`, of `adjust()`, and of limits that are declared with a route. A window with another unit is a
   * LimitError, because no request could name its unit.
   * @default the units of the windows in `limits`
   */
  readonly units?: readonly string[] | undefined;
  /**
   * Lets another process settle a decision: `createReceipts({ secret })`. See `receipt` of a decision.
   * @default none: reading `receipt` is an OptionError
   */
  readonly receipts?: Receipts | undefined;
  /**
   * Lets this process decide from units that it charged ahead in the store, without a call per request (S32):
   * `createLeases()`. `docs/leases.md` says what remains true, and what does not.
   * @default none: every decision is the store's
   */
  readonly leases?: Leases | undefined;
  /**
   * How slots of requests in flight are held, for limits with `inFlight` (S29).
   * @default a lease of a minute, and at most an hour per request
   */
  readonly inFlight?: InFlightOptions | undefined;
  /**
   * Whether signs of a mistake are logged, once each, such as a route of `limits` that no request names.
   * `docs/misuse.md` lists them.
   * @default true
   */
  readonly validate?: boolean | undefined;
  /**
   * Is called with these warnings, as a text and a `MisuseWarning`; false: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
}

/** A subject and the cost of its request. */
export interface LimitRequest extends Subject {
  /**
   * How much of each window the request uses: a positive safe integer (S11), or one per unit, as in
   * `{ requests: 1, tokens: 800 }`. A unit that it does not name costs nothing (S33).
   * @default 1, in requests
   */
  readonly cost?: Cost | undefined;
  /**
   * Groups that the request counts for beside its account, at most four, such as `{ customer: 'cus_7' }`: an id by the
   * name of the group in `limits.groups` (S31). It must fit the account's windows and those of every group, and charges
   * all of them or none.
   * @default none
   */
  readonly groups?: Groups | undefined;
}

/** Decides, per account and perhaps route, whether a request fits every window of its window set. */
export interface Limiter {
  /**
   * Whether a decision never needs a promise: the store is synchronous, and `limits` is not a function, which could
   * return one.
   */
  readonly synchronous: boolean;
  /**
   * Charges every window, or rejects the request and charges no window (S5).
   * @throws SubjectError, UnknownPlanError, UnknownLaneError, CostError, LimitError, and OptionError if your function
   * `limits` throws or rejects; nothing was charged then. Also the store's errors if it cannot decide
   */
  consume(request: LimitRequest): Promise<Decision>;
  /**
   * Like `consume`, without a promise.
   * @throws StoreNotSynchronousError if the store is not synchronous; OptionError if your function `limits` returned a
   * promise
   */
  consumeSync(request: LimitRequest): Decision;
  /** Returns the current state of every window of the subject's window set. Changes nothing (S14). */
  peek(subject: Subject): Promise<readonly WindowStatus[]>;
  /**
   * Returns every window of an account: of each route that its limits name, and of the routes that you name. Changes
   * nothing. With Redis, all are read together. A function `limits` is called once without a route, and then with each.
   * @throws OptionError, SubjectError, UnknownPlanError, UnknownLaneError, LimitError, and the store's errors
   */
  usage(subject: UsageSubject): Promise<Usage>;
  /**
   * Returns how many requests of the subject are in flight, of the limit that has the least room for more (S29). Changes
   * nothing. Undefined if no limit bounds them.
   */
  inFlight(subject: Subject): Promise<InFlightStatus | undefined>;
  /**
   * Refunds an accepted decision: settles it with a cost of 0. False if nothing was refunded, because the decision is a
   * rejection, was settled before, or its windows are over (S13).
   * @param decision or its `receipt`, which another process may have read
   */
  refund(decision: Decision | string): Promise<boolean>;
  /**
   * Corrects the cost of an accepted decision, once, in the windows that it charged (S13). If the cost is higher,
   * the difference is charged even if it does not fit, because the work is done.
   * @param decision or its `receipt`, which another process may have read. The two count as one: whichever is settled
   * first decides, in any process (S37)
   * @param cost what the request cost in the end: a safe integer, 0 or more, or one per unit. Units that it does not name
   * stay as they are, and can be settled later. A number is requests, but 0 is a refund of every unit (S33)
   * @returns false if nothing was changed, because the decision is a rejection, was settled before, or its windows are
   * over
   * @throws CostError, ReceiptError; nothing was changed then. Also the store's errors: the decision counts as settled
   * then, because the store may have changed the counts. A receipt can be tried again
   */
  settle(decision: Decision | string, cost: Cost): Promise<boolean>;
  /**
   * Says that the request of an accepted decision ended: it is in flight no more (S29). Limits without `inFlight` need no
   * call. Gates, their adapters and the gateway call it.
   * @returns whether this call gave a slot back: false if there was none, or if it was given back before. It never
   * rejects: if the store does not answer, the call is repeated while the lease of the slot lasts
   */
  release(decision: Decision): Promise<boolean>;
  /**
   * Charges every window of the subject, also if the cost does not fit: a penalty (S35). It decides nothing. A group is
   * charged by itself, as the account that `groupAccount(name, id)` returns; `groups` is an OptionError. If the
   * store's server is away, `onStoreFailure` says what happens, as for `consume`: `local` charges the counters of this
   * process, `admit` charges nothing and returns no windows, `refuse` throws.
   * @returns every window after that
   * @throws OptionError (also if the store cannot charge), SubjectError, CostError and so on, as `consume`
   */
  charge(request: LimitRequest): Promise<readonly WindowStatus[]>;
  /**
   * Deletes the counters of an account, of a route, or of one route of one account (S14). With `{}`, of all. Blocks
   * stay.
   */
  reset(target: ResetTarget): Promise<void>;
  /**
   * Rejects every request of an account, or of one of its routes, for `forMs` from now on, in every process that shares
   * the store (S21). It replaces the block of the same target, if there is one. A request without any window is not
   * limited, and so not blocked.
   * @param block `forMs` is an integer of milliseconds from 1 to a year. `reason` is at most 200 characters long, and
   * over HTTP the client reads it. With `reset` the counters of the target are deleted in the same step: nothing sees
   * the block without the fresh start, or the fresh start without the block
   * @throws OptionError (also if the store cannot block), SubjectError, StoreFullError, or the store's errors; then
   * nothing is blocked
   */
  block(target: BlockTarget, block: BlockOptions): Promise<void>;
  /** Lifts the block of exactly this target: lifting an account's block does not lift the blocks of its routes. */
  unblock(target: BlockTarget): Promise<void>;
  /**
   * Returns the block that rejects requests of the target now, and how much longer; of two blocks, the block that ends
   * later.
   */
  blocked(target: BlockTarget): Promise<Block | undefined>;
  /**
   * Changes a limit at run time, with immediate effect, also for active windows (S10). `'recommended'` restores the
   * values of `limits`. Only in this process; `headgate/shared-limits` offers limits that all processes share.
   * @throws LimitError, OptionError (also if `limits` is a source of window sets)
   */
  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void;
  /**
   * Returns the window set that a request of the subject must fit now.
   * @throws OptionError if your function `limits` returned a promise: use {@link Limiter.peek}
   */
  windowSet(subject: Subject): WindowSet;
  /** Closes the store. Later calls reject or throw. */
  close(): Promise<void>;
}
