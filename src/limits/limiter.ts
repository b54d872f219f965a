import {
  ClosedError,
  CostError,
  isHeadgateError,
  OptionError,
  StoreNotSynchronousError,
  SubjectError,
} from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { checkMethods, checkOptions } from '../base/options.ts';
import { describeThrown } from '../base/thrown.ts';
import type { AdjustTarget } from '../core/adjustment.ts';
import type { Block, BlockTarget } from '../core/block.ts';
import type { Decision, WindowStatus } from '../core/decision.ts';
import type { LimitInput } from '../core/limit.ts';
import { createMisuseLog } from '../core/misuse.ts';
import type { LimitStore, ResetTarget } from '../core/ports.ts';
import { EVERY_ROUTE, hasSharedCount, type WindowSet } from '../core/window-set.ts';
import { createMemoryStore } from '../stores/memory/limits.ts';
import { type BlockOptions, checkBlock, checkBlockTarget } from './blocks.ts';
import { LimiterChecks } from './limiter-checks.ts';
import { checkUsageSubject, distinctRoutes, type Usage, type UsageSubject, usageOf } from './usage.ts';
import { ROUTE_NEEDED } from './window-set-cache.ts';
import {
  isWindowSetSource,
  type Limits,
  type NamedRoutes,
  resolveWindowSet,
  type Subject,
  type WindowSetSource,
  WindowSets,
} from './window-sets.ts';

/** Options of {@link createLimiter}. */
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
   * How much of each window the request uses: a positive safe integer (S11).
   * @default 1
   */
  readonly cost?: number | undefined;
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
   * @throws SubjectError, UnknownPlanError, CostError, LimitError, and OptionError if your function `limits` throws;
   * or rejects; nothing was charged then. Also the store's errors if it cannot decide
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
   * @throws OptionError, SubjectError, UnknownPlanError, LimitError, and the store's errors
   */
  usage(subject: UsageSubject): Promise<Usage>;
  /**
   * Refunds an accepted decision: settles it with a cost of 0. False if nothing was refunded, because the decision is a
   * rejection, was settled before, or its windows are over (S13).
   */
  refund(decision: Decision): Promise<boolean>;
  /**
   * Corrects the cost of an accepted decision, once, in the windows that it charged (S13). If the cost is higher,
   * the difference is charged even if it does not fit, because the work is done.
   * @param cost what the request cost in the end: a safe integer, 0 or more
   * @returns false if nothing was changed, because the decision is a rejection, was settled before, or its windows are
   * over
   * @throws CostError; nothing was changed then. Also the store's errors: the decision counts as settled then,
   * because the store may have changed the counts
   */
  settle(decision: Decision, cost: number): Promise<boolean>;
  /**
   * Charges every window of the subject, also if the cost does not fit: a penalty (S35). It decides nothing. If the
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

/**
 * Creates a limiter.
 * @example
 * ```ts
 * const limiter = createLimiter({ limits: ['60/1m', '5000/1d'] });
 * const decision = await limiter.consume({ account: 'acc_1' });
 * ```
 * @throws LimitError, OptionError with the place of the fault
 */
export function createLimiter(options: LimiterOptions): Limiter {
  checkOptions(options, ['store', 'limits', 'validate', 'logger'], 'options');
  const { limits } = options;
  // A store that is undefined by mistake would let each process count for itself, in silence.
  const store = 'store' in options ? options.store : createMemoryStore();
  checkMethods('store', store, ['consume', 'peek', 'settle', 'reset'], ', as createMemoryStore() does');
  const windowSets = isWindowSetSource(limits) ? limits : new WindowSets(limits);
  const misuse = createMisuseLog(options);
  const checks = misuse && new LimiterChecks(misuse, windowSets.limitedRoutes ?? []);
  checks?.created(store, limits);
  if (checks !== undefined && windowSets instanceof WindowSets) {
    windowSets.onUnknownProvider = (provider) => {
      windowSets.onUnknownProvider = undefined;
      checks.unknownProvider(provider);
    };
    windowSets.onHidden = (target) => checks.hidden(target);
  }
  const limiter = new StoreLimiter(store, windowSets, checks);
  return withParts(limiter, { store, windowSets, resolve: limiter.resolve });
}

/** What a limiter is made of. */
interface LimiterParts {
  readonly store: LimitStore;
  readonly windowSets: WindowSetSource;
  /** Like `windowSet` of the limiter, and waits for a promise of the function `limits`. */
  readonly resolve: (subject: Subject) => MaybePromise<WindowSet>;
}

/** Under this name a limiter keeps its parts, also if two copies of the package are loaded (ESM and CJS). */
const PARTS = /* @__PURE__ */ Symbol.for('headgate.limiter.parts');

/** The parts of a limiter; undefined if `createLimiter` did not make it. */
export function partsOf(limiter: Limiter): LimiterParts | undefined {
  return (limiter as { readonly [PARTS]?: LimiterParts })[PARTS];
}

/** Gives a decorated limiter the parts of the limiter within. */
export function keepParts(inner: Limiter, decorated: Limiter): Limiter {
  return withParts(decorated, partsOf(inner));
}

/** A computed name in the class would keep bundlers from leaving the class out. */
function withParts(limiter: Limiter, parts: LimiterParts | undefined): Limiter {
  return Object.defineProperty(limiter, PARTS, { value: parts });
}

/** Like `windowSet` of the limiter, and waits for a promise of the function `limits`. */
export function windowSetOf(limiter: Limiter, subject: Subject): MaybePromise<WindowSet> {
  return partsOf(limiter)?.resolve(subject) ?? limiter.windowSet(subject);
}

/** Whether each request of a limiter must name its route. */
export function needsRoute(limiter: Limiter): boolean {
  return partsOf(limiter)?.windowSets.needsRoute ?? true;
}

/** A store that must remember a fresh start can only forget it too early. */
const UNKNOWN_LONGEST_MS = 400 * 86_400_000;
const NOT_SUBJECT = "must be an object such as { account: 'acc_1', route: 'POST /emails' }";
const NOT_ADJUSTABLE = 'must be changed at their source, as with put() of shared limits';

class StoreLimiter implements Limiter {
  readonly #store: LimitStore;
  readonly #windowSets: WindowSetSource;
  readonly #checks: LimiterChecks | undefined;
  readonly #mayWait: boolean;
  #closed = false;

  get synchronous(): boolean {
    return this.#store.synchronous && !this.#mayWait;
  }

  constructor(store: LimitStore, windowSets: WindowSetSource, checks: LimiterChecks | undefined) {
    this.#store = store;
    this.#windowSets = windowSets;
    this.#checks = checks;
    this.#mayWait = windowSets instanceof WindowSets && windowSets.mayWait;
  }

  consume(request: LimitRequest): Promise<Decision> {
    // Not an async function, because that would cost more than the decision itself.
    try {
      const decided = this.#consume(request);
      // This check, with a single call site, shows the compiler that a decision is without a `then`. Promise.resolve()
      // then skips its own search for `then`, which would take a tenth of the call. The shared `isPromise` sees many
      // types, so it would be without this effect.
      return isPending(decided) ? decided : Promise.resolve(decided);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  consumeSync(request: LimitRequest): Decision {
    if (!this.#store.synchronous) throw new StoreNotSynchronousError();
    return this.#decide(request, this.windowSet(request)) as Decision;
  }

  async peek(subject: Subject): Promise<readonly WindowStatus[]> {
    const { account, route = EVERY_ROUTE } = Object(subject) as Subject;
    return this.#store.peek(account, route, await this.resolve(subject));
  }

  async usage(subject: UsageSubject): Promise<Usage> {
    const { account, routes: further } = checkUsageSubject(subject);
    const { routes, others } = await this.#namedRoutes(account);
    const all = distinctRoutes([...routes.map((route) => ({ ...account, route })), ...further]);
    const windowSets = await Promise.all(all.map(this.resolve));
    if (hasSharedCount(others)) windowSets.push(others);
    // All peeks begin in one turn of the event loop: a store can send them together.
    const reads = windowSets.map(async (windowSet, i) => {
      const { route = EVERY_ROUTE } = all[i] ?? {};
      return { windowSet, windows: await this.#store.peek(account.account, route, windowSet) };
    });
    return usageOf(all, await Promise.all(reads));
  }

  async refund(decision: Decision): Promise<boolean> {
    return this.settle(decision, 0);
  }

  async settle(decision: Decision, cost: number): Promise<boolean> {
    this.#checkOpen();
    if (typeof decision?.takeCharge !== 'function')
      throw new OptionError('decision', decision, 'must be what consume() returned');
    checkCost(cost, 0);
    return this.#store.settle(decision, cost);
  }

  async charge(request: LimitRequest): Promise<readonly WindowStatus[]> {
    const { account, route = EVERY_ROUTE, cost = 1 } = Object(request) as LimitRequest;
    const windowSet = this.resolve(request);
    checkCost(cost);
    checkMethods('store', this.#store, ['charge'], ': this store cannot charge');
    return (this.#store as Required<LimitStore>).charge(account, route, await windowSet, cost);
  }

  async reset(target: ResetTarget): Promise<void> {
    this.#checkOpen();
    checkOptions(target, ['account', 'route'], 'target');
    // A field that is given but undefined would silently reset all accounts or routes.
    for (const field of ['account', 'route'] as const) if (field in target) checkString(field, target[field]);
    await this.#store.reset(target);
  }

  async block(target: BlockTarget, options: BlockOptions): Promise<void> {
    const store = this.#blockStore();
    const checked = checkBlockTarget(target);
    const { forMs, reason, reset } = checkBlock(options);
    const block = { forMs, reason };
    await (reset
      ? store.block(checked, block, { longestMs: this.#windowSets.longestMs ?? UNKNOWN_LONGEST_MS })
      : store.block(checked, block));
  }

  async unblock(target: BlockTarget): Promise<void> {
    await this.#blockStore().unblock(checkBlockTarget(target));
  }

  async blocked(target: BlockTarget): Promise<Block | undefined> {
    return this.#blockStore().blocked(checkBlockTarget(target));
  }

  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void {
    if (!(this.#windowSets instanceof WindowSets)) throw new OptionError('limits', this.#windowSets, NOT_ADJUSTABLE);
    this.#windowSets.adjust(target, windows);
  }

  windowSet(subject: Subject): WindowSet {
    this.#check(subject);
    try {
      return this.#windowSets.windowSet(subject);
    } catch (error) {
      throw faultOfLimits(error);
    }
  }

  /** A property, because it belongs to the limiter's parts and not to its methods. */
  readonly resolve = (subject: Subject): MaybePromise<WindowSet> => {
    if (!this.#mayWait) return this.windowSet(subject);
    this.#check(subject);
    return guarded(() => resolveWindowSet(this.#windowSets, subject));
  };

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#store.close?.();
  }

  #consume(request: LimitRequest): Decision | Promise<Decision> {
    if (!this.#mayWait) return this.#decide(request, this.windowSet(request));
    const windowSet = this.resolve(request);
    if (!isPromise(windowSet)) return this.#decide(request, windowSet);
    // The caller may change its object meanwhile.
    const copy = { ...request };
    return windowSet.then((resolved) => {
      this.#checkOpen();
      return this.#decide(copy, resolved);
    });
  }

  #decide(request: LimitRequest, windowSet: WindowSet): Decision | Promise<Decision> {
    const { account, route = EVERY_ROUTE, cost = 1 } = request;
    checkCost(cost);
    this.#checks?.decides(account, route, windowSet.routeWindows > 0 || windowSet.allMethodsScope === 'route');
    return this.#store.consume(account, route, windowSet, cost);
  }

  #namedRoutes(account: Subject): MaybePromise<NamedRoutes> {
    const source = this.#windowSets;
    const { limitedRoutes: routes = [], needsRoute = true } = source;
    this.#check({ ...account, route: EVERY_ROUTE });
    return guarded(() => {
      if (source.namedRoutes !== undefined) return source.namedRoutes(account);
      return { routes, others: source.windowSet(needsRoute ? { ...account, route: EVERY_ROUTE } : account) };
    });
  }

  #blockStore(): Required<LimitStore> {
    this.#checkOpen();
    checkMethods('store', this.#store, ['block', 'unblock', 'blocked'], ': this store cannot block');
    return this.#store as Required<LimitStore>;
  }

  #check(subject: Subject): void {
    this.#checkOpen();
    if (typeof subject !== 'object' || subject === null) throw new OptionError('subject', subject, NOT_SUBJECT);
    checkString('account', subject.account);
    const { needsRoute = true } = this.#windowSets;
    if (subject.route !== undefined) checkString('route', subject.route);
    else if (needsRoute) throw new SubjectError('route', undefined, ROUTE_NEEDED);
    if (subject.provider !== undefined) checkString('provider', subject.provider);
    if (subject.plan !== undefined) checkString('plan', subject.plan);
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('the limiter');
  }
}

/** Calls your function `limits`. */
function guarded<Result>(call: () => MaybePromise<Result>): MaybePromise<Result> {
  try {
    const result = call();
    if (!isPromise(result)) return result;
    return result.catch((error: unknown) => {
      throw faultOfLimits(error);
    });
  } catch (error) {
    throw faultOfLimits(error);
  }
}

/** Otherwise the fault of your function would look like an outage of the store. */
function faultOfLimits(error: unknown): unknown {
  if (isHeadgateError(error)) return error;
  const { name, message } = describeThrown(error);
  return new OptionError('limits(subject)', error, 'must not throw', `${name}: ${message}`, { cause: error });
}

function isPending(decided: Decision | Promise<Decision>): decided is Promise<Decision> {
  return (decided as { readonly then?: unknown }).then !== undefined;
}

/** @throws CostError */
export function checkCost(cost: unknown, least: 0 | 1 = 1): asserts cost is number {
  if (!Number.isSafeInteger(cost) || (cost as number) < least) throw new CostError(cost, least);
}

function checkString(field: string, value: unknown): void {
  if (typeof value !== 'string') throw new SubjectError(field, value);
}
