import {
  ClosedError,
  isHeadgateError,
  OptionError,
  ReceiptError,
  StoreNotSynchronousError,
  SubjectError,
  UnknownLaneError,
} from '../base/errors.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { checkMethods, checkOptions } from '../base/options.ts';
import { describeThrown } from '../base/thrown.ts';
import type { AdjustTarget } from '../core/adjustment.ts';
import type { Block, BlockTarget } from '../core/block.ts';
import { countersOf } from '../core/counters.ts';
import type { Decision, WindowStatus } from '../core/decision.ts';
import type { LimitInput } from '../core/limit.ts';
import { createMisuseLog } from '../core/misuse.ts';
import type { LimitStore, ResetTarget } from '../core/ports.ts';
import { type InFlightStatus, inFlightStatus } from '../core/slot.ts';
import { REQUESTS } from '../core/unit.ts';
import { EVERY_ROUTE, hasSharedCount, type WindowSet } from '../core/window-set.ts';
import { createMemoryStore } from '../stores/memory/limits.ts';
import { type BlockOptions, checkBlock, checkBlockTarget } from './blocks.ts';
import { checkCost, copyOfRequest, costsOf } from './costs.ts';
import { accountsOf, checkNoGroup, resolveAll, unknownGroup } from './groups.ts';
import { decideJointly, OF_ACCOUNT, settleParts, type UndoFailed } from './joint-decision.ts';
import { LimiterChecks } from './limiter-checks.ts';
import { withParts } from './limiter-parts.ts';
import type { Limiter, LimiterOptions, LimitRequest, ReadReceipt, Receipts } from './ports.ts';
import { receiptIdOf } from './receipts.ts';
import { makeDisposable, releaseSlots, slotPart } from './slot-part.ts';
import { Slots } from './slots.ts';
import {
  checkNoUnit,
  costedParts,
  countedParts,
  jointRequest,
  peekUnits,
  routesOfUnits,
  settlementsOf,
  unitParts,
} from './unit-parts.ts';
import { checkUsageSubject, distinctRoutes, type Usage, type UsageSubject, usageOf } from './usage.ts';
import { ROUTE_NEEDED } from './window-set-cache.ts';
import { isWindowSetSource, type NamedRoutes, type Subject, type WindowSetSource } from './window-set-source.ts';
import { resolveWindowSet, WindowSets } from './window-sets.ts';

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
  const known = ['store', 'limits', 'units', 'receipts', 'leases', 'inFlight', 'validate', 'logger'];
  checkOptions(options, known, 'options');
  const { limits, units, receipts, leases, inFlight, logger } = options;
  // A store that is undefined by mistake would let each process count for itself, in silence.
  const store = 'store' in options ? options.store : createMemoryStore();
  if (store === undefined) throw new OptionError('store', store, NO_STORE);
  checkMethods('store', store, ['consume', 'peek', 'settle', 'reset'], ', as createMemoryStore() does');
  if (receipts !== undefined) {
    checkMethods('receipts', receipts, ['read', 'addTo'], ', as createReceipts({ secret }) does');
    checkMethods('store', store, ['settleOnce'], ': this store cannot remember receipts');
  }
  if (leases !== undefined) checkMethods('leases', leases, ['addTo'], ', as createLeases() does');
  const windowSets = isWindowSetSource(limits) ? limits : new WindowSets(limits, 'limits', units);
  if (units !== undefined && windowSets === limits) throw new OptionError('units', units, UNITS_OF_SOURCE);
  const misuse = createMisuseLog(options);
  const checks = misuse && new LimiterChecks(misuse, windowSets);
  checks?.created(store, limits, receipts !== undefined);
  if (checks !== undefined && windowSets instanceof WindowSets) {
    checks.listed(windowSets.limits, windowSets.shares, limits);
    windowSets.onUnknownProvider = (provider) => {
      windowSets.onUnknownProvider = undefined;
      checks.unknownProvider(provider);
    };
    windowSets.onHidden = (target) => checks.hidden(target);
  }
  const decider = leases?.addTo(store) ?? store;
  makeDisposable();
  let made: Slots | undefined;
  const slots = (): Slots => {
    if (made === undefined) {
      made = new Slots(decider, inFlight, logger);
      made.onNeverReleased = (held) => checks?.neverReleased(held);
    }
    return made;
  };
  // A mistake shows at the start, as far as it is known there that requests in flight are bounded.
  if (inFlight !== undefined || (windowSets instanceof WindowSets && windowSets.boundsInFlight)) slots();
  const limiter = new StoreLimiter(decider, windowSets, receipts, checks, slots, loggedOnce(createLogger(logger)));
  const whole = withParts(limiter, { store: decider, windowSets, resolve: limiter.resolve, slots: () => made });
  return receipts === undefined ? whole : receipts.addTo(whole);
}

/** A store that must remember a fresh start can only forget it too early. */
const UNKNOWN_LONGEST_MS = 400 * 86_400_000;
const NO_STORE = 'must be a store, or left out: then each process counts in its own memory';
const ONE_ARGUMENT = "must be absent; the cost is a field of the first: { account: 'acc_1', cost: 5 }";
const NO_SECRET = 'must be given to settle a receipt, with the secret of the limiter that issued it';
const NOT_SUBJECT = "must be an object such as { account: 'acc_1', route: 'POST /emails' }";
const UNITS_OF_SOURCE = 'must be given to the source of the window sets, such as createSharedLimits()';
const NOT_CHARGED = 'must be absent: charge each group by itself, as the account that groupAccount(name, id) returns';
const NOT_UNDONE =
  'headgate: what a rejected request charged could not be undone: it stays until its windows end; further ones are not logged';
const NOT_ADJUSTABLE = 'must be changed at their source, as with put() of shared limits';

class StoreLimiter implements Limiter {
  readonly #store: LimitStore;
  readonly #windowSets: WindowSetSource;
  readonly #receipts: Receipts | undefined;
  readonly #checks: LimiterChecks | undefined;
  readonly #slots: () => Slots;
  readonly #undoFailed: UndoFailed;
  readonly #mayWait: boolean;
  #closed = false;

  get synchronous(): boolean {
    return this.#store.synchronous && !this.#mayWait;
  }

  constructor(
    store: LimitStore,
    windowSets: WindowSetSource,
    receipts: Receipts | undefined,
    checks: LimiterChecks | undefined,
    slots: () => Slots,
    undoFailed: UndoFailed,
  ) {
    this.#store = store;
    this.#windowSets = windowSets;
    this.#receipts = receipts;
    this.#checks = checks;
    this.#slots = slots;
    this.#undoFailed = undoFailed;
    this.#mayWait = windowSets instanceof WindowSets && windowSets.mayWait;
  }

  consume(request: LimitRequest, further?: unknown): Promise<Decision> {
    // Not an async function, because that would cost more than the decision itself.
    try {
      checkFurther(further);
      const decided = this.#consume(request);
      // This check, with a single call site, shows the compiler that a decision is without a `then`. Promise.resolve()
      // then skips its own search for `then`, which would take a tenth of the call. The shared `isPromise` sees many
      // types, so it would be without this effect.
      return isPending(decided) ? decided : Promise.resolve(decided);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  consumeSync(request: LimitRequest, further?: unknown): Decision {
    checkFurther(further);
    if (!this.#store.synchronous) throw new StoreNotSynchronousError();
    return this.#decide(request, this.windowSet(request), this.#resolveNow) as Decision;
  }

  async peek(subject: Subject): Promise<readonly WindowStatus[]> {
    const { account, route = EVERY_ROUTE } = Object(subject) as Subject;
    const windowSet = await this.resolve(subject);
    this.#checks?.looksAtFields(subject);
    return peekUnits(this.#store, account, route, windowSet);
  }

  async usage(subject: UsageSubject): Promise<Usage> {
    const { account, routes: further } = checkUsageSubject(subject);
    const { routes, others } = await this.#namedRoutes(account);
    const all = distinctRoutes([...routes.map((route) => ({ route, ...account })), ...further]);
    const windowSets = await Promise.all(all.map(this.resolve));
    if (hasSharedCount(others)) windowSets.push(others);
    // All peeks begin in one turn of the event loop: a store can send them together.
    const reads = windowSets.map(async (windowSet, i) => {
      const { route = EVERY_ROUTE } = all[i] ?? {};
      return { windowSet, windows: await peekUnits(this.#store, account.account, route, windowSet) };
    });
    return usageOf(all, await Promise.all(reads));
  }

  async inFlight(subject: Subject): Promise<InFlightStatus | undefined> {
    const { account, route = EVERY_ROUTE } = Object(subject) as Subject;
    const { inFlight } = await this.resolve(subject);
    this.#checks?.looksAtFields(subject);
    return inFlight && inFlightStatus(await this.#slots().count(account, route, inFlight), inFlight);
  }

  async refund(decision: Decision | string): Promise<boolean> {
    return this.settle(decision, 0);
  }

  async settle(settled: Decision | string, cost: number): Promise<boolean> {
    this.#checkOpen();
    if (typeof settled !== 'string' && typeof settled?.takeCharge !== 'function')
      throw new OptionError('decision', settled, 'must be what consume() returned, or its receipt');
    costsOf(cost, this.#units, 0);
    const decision = typeof settled === 'string' ? this.#read(settled).decision : settled;
    if (decision === undefined) return false;
    const changes = settlementsOf(decision, cost, this.#units);
    // The accepted parts of a rejection are undone.
    return decision.accepted && settleParts(changes, (change) => this.#settle(...change));
  }

  #settle(decision: Decision, cost: number): MaybePromise<boolean> {
    const store = this.#store;
    const id = receiptIdOf(decision);
    // A decision of another limiter can have a receipt although this one has none.
    return id === undefined || store.settleOnce === undefined
      ? store.settle(decision, cost)
      : store.settleOnce(decision, cost, id);
  }

  #read(receipt: string): ReadReceipt {
    if (this.#receipts === undefined) throw new OptionError('receipts', undefined, NO_SECRET);
    const read = this.#receipts.read(receipt);
    const { counters } = countersOf(this.#store);
    // The counters of the receipt do not exist there: nothing would ever be settled, in silence.
    if (read.counters !== undefined && counters !== undefined && read.counters !== counters)
      throw new ReceiptError(`is of the counters "${read.counters}", and the store of this limiter has "${counters}"`);
    return read;
  }

  release(decision: Decision): Promise<boolean> {
    if (typeof decision?.takeCharge === 'function') return Promise.resolve(releaseSlots(decision));
    return Promise.reject(new OptionError('decision', decision, 'must be what consume() returned'));
  }

  async charge(request: LimitRequest, further?: unknown): Promise<readonly WindowStatus[]> {
    checkFurther(further);
    const { account, route = EVERY_ROUTE, cost = 1, groups } = Object(request) as LimitRequest;
    // Left out in silence, the group would not be charged.
    if (groups !== undefined) throw new OptionError('groups', groups, NOT_CHARGED);
    const resolving = this.resolve(request);
    this.#checks?.looksAtFields(request);
    const costs = costsOf(cost, this.#units);
    const store = this.#store as Required<LimitStore>;
    checkMethods('store', store, ['charge'], ': this store cannot charge');
    const windowSet = await resolving;
    costedParts(route, windowSet, costs);
    const parts = countedParts(route, windowSet).map((part) => {
      const units = costs.get(part.unit);
      // Windows of units that the cost does not name are only read.
      return units === undefined
        ? store.peek(account, part.route, part.windowSet)
        : store.charge(account, part.route, part.windowSet, units);
    });
    return (await Promise.all(parts)).flat();
  }

  async reset(target: ResetTarget): Promise<void> {
    this.#checkOpen();
    checkOptions(target, ['account', 'route'], 'target');
    // A field that is given but undefined would silently reset all accounts or routes.
    for (const field of ['account', 'route'] as const) if (field in target) checkString(field, target[field]);
    if (target.route !== undefined) this.#checks?.targetsRoute();
    await this.#ofUnits(target, (each) => this.#store.reset(each));
  }

  async block(target: BlockTarget, options: BlockOptions): Promise<void> {
    const store = this.#blockStore();
    const checked = checkBlockTarget(target);
    const { forMs, reason, reset } = checkBlock(options);
    this.#checks?.blocksFor(forMs);
    if (checked.route !== undefined) this.#checks?.targetsRoute();
    const block = { forMs, reason };
    const fresh = { longestMs: this.#windowSets.longestMs ?? UNKNOWN_LONGEST_MS };
    await this.#ofUnits(checked, (each) => (reset ? store.block(each, block, fresh) : store.block(each, block)));
  }

  async unblock(target: BlockTarget): Promise<void> {
    const store = this.#blockStore();
    await this.#ofUnits(checkBlockTarget(target), (each) => store.unblock(each));
  }

  /** Does for a target what is to be done, and at the same time for the units of its route, which a store counts apart. */
  async #ofUnits<Target extends ResetTarget>(
    target: Target,
    change: (target: Target) => MaybePromise<void>,
  ): Promise<void> {
    const { route, ...rest } = target;
    const routes = route === undefined ? [] : routesOfUnits(route, this.#units);
    await Promise.all([target, ...routes.map((each) => ({ route: each, ...rest }) as Target)].map(change));
  }

  get #units(): readonly string[] {
    return this.#windowSets.units ?? [];
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
      const windowSet = this.#windowSets.windowSet(subject);
      if (subject.lane !== undefined) checkLane(windowSet, subject.lane);
      return windowSet;
    } catch (error) {
      throw faultOfLimits(error);
    }
  }

  /** Made once: a request would pay for a function of its own. */
  readonly #resolveNow: Resolve = (subject) => this.windowSet(subject);

  /** A property, because it belongs to the limiter's parts and not to its methods. */
  readonly resolve = (subject: Subject): MaybePromise<WindowSet> => {
    if (!this.#mayWait) return this.windowSet(subject);
    this.#check(subject);
    // Only limits of this package may wait, and they know the lanes.
    return guarded(() => resolveWindowSet(this.#windowSets, subject));
  };

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#store.close?.();
  }

  #consume(request: LimitRequest): Decision | Promise<Decision> {
    if (!this.#mayWait) return this.#decide(request, this.windowSet(request), this.resolve);
    const windowSet = this.resolve(request);
    if (!isPromise(windowSet)) return this.#decide(request, windowSet, this.resolve);
    // The caller may change its object meanwhile.
    const copy = copyOfRequest(request);
    return windowSet.then((resolved) => {
      this.#checkOpen();
      return this.#decide(copy, resolved, this.resolve);
    });
  }

  /** @param resolve returns the window sets of groups */
  #decide(request: LimitRequest, windowSet: WindowSet, resolve: Resolve): Decision | Promise<Decision> {
    const { account, route = EVERY_ROUTE, cost = 1 } = request;
    const isJoint = windowSet.isJoint || request.groups !== undefined || typeof cost !== 'number';
    if (!isJoint) checkCost(cost);
    if (this.#windowSets.groups !== undefined) checkNoGroup(account);
    this.#checks?.decides(request, route, windowSet);
    const decided = isJoint
      ? this.#decideJointly(request, windowSet, resolve)
      : this.#store.consume(account, route, windowSet, cost);
    if (this.#checks?.areUnread) this.#checks.decided(decided);
    return decided;
  }

  /**
   * Asks about each unit of the account and of its groups, and about their requests in flight, at the same time (S29, S31,
   * S33).
   */
  #decideJointly(request: LimitRequest, windowSet: WindowSet, resolve: Resolve): MaybePromise<Decision> {
    const { account, route: named, lane, cost = 1 } = request;
    const route = named ?? EVERY_ROUTE;
    const costs = costsOf(cost, this.#units);
    const ofRequests = costs.get(REQUESTS) ?? 0;
    const groups = request.groups === undefined ? [] : accountsOf(request.groups);
    return after(resolveAll(groups, { route: named, lane }, resolve), (windowSets) => {
      const { groups: known } = this.#windowSets;
      for (const [name] of groups) if (!known?.includes(name)) throw unknownGroup(name, known);
      const subjects = [
        [OF_ACCOUNT, account, route, windowSet] as const,
        ...groups.map(([name, group], i) => [name, group, route, windowSets[i] as WindowSet] as const),
      ];
      const windows = subjects.flatMap((subject) => unitParts(this.#store, ...subject, costs));
      const slots = subjects.flatMap((subject) => slotPart(this.#slots, ...subject, ofRequests) ?? []);
      // Windows come first: their rejection names a time.
      // A copy, because the caller may change its object.
      const named = groups.length === 0 ? undefined : { ...request.groups };
      const joint = { groups: named, ...jointRequest(account, route, costs) };
      return decideJointly(joint, [...windows, ...slots], this.#undoFailed);
    });
  }

  #namedRoutes(account: Subject): MaybePromise<NamedRoutes> {
    const source = this.#windowSets;
    const { limitedRoutes: routes = [], needsRoute = true } = source;
    this.#check({ route: EVERY_ROUTE, ...account });
    return guarded(() => {
      if (source.namedRoutes !== undefined) return source.namedRoutes(account);
      return { routes, others: source.windowSet(needsRoute ? { route: EVERY_ROUTE, ...account } : account) };
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
    const { needsRoute = true, units } = this.#windowSets;
    if (subject.route !== undefined) checkString('route', subject.route);
    else if (needsRoute) throw new SubjectError('route', undefined, ROUTE_NEEDED);
    if (units !== undefined && units.length > 0) checkNoUnit(subject.route, units);
    if (subject.provider !== undefined) checkString('provider', subject.provider);
    if (subject.plan !== undefined) checkString('plan', subject.plan);
    if (subject.lane !== undefined) checkString('lane', subject.lane);
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError('the limiter');
  }
}

/** Logs the first undo that failed: the store need not log its outage, and only the limiter knows what stays charged. */
function loggedOnce(log: Logger): UndoFailed {
  let isLogged = false;
  return (error) => {
    if (!isLogged) log(NOT_UNDONE, error);
    isLogged = true;
  };
}

type Resolve = (subject: Subject) => MaybePromise<WindowSet>;

/**
 * A source of window sets may not know lanes. Its request could use what is reserved for others.
 * @throws UnknownLaneError
 */
function checkLane(windowSet: WindowSet, lane: string): void {
  if (windowSet.lane !== lane) throw new UnknownLaneError(lane, []);
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

/**
 * Other libraries take the cost as a second argument. Ignored, it would be 1.
 * @throws OptionError
 */
function checkFurther(further: unknown): void {
  if (further !== undefined) throw new OptionError('the second argument', further, ONE_ARGUMENT);
}

function checkString(field: string, value: unknown): void {
  if (typeof value !== 'string') throw new SubjectError(field, value);
}
