import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { Clock } from '../core/clock.ts';
import type { Decision } from '../core/decision.ts';
import { decorateStore } from '../core/decorate-store.ts';
import type { LimitStore, ResetTarget } from '../core/ports.ts';
import type { Timers } from '../core/timers.ts';
import { type Counters, NEVER } from '../core/window.ts';
import type { WindowSet } from '../core/window-set.ts';
import { Ends } from './ends.ts';
import { chargedOf, LeaseCalls, type LeaseParts } from './lease-calls.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import { LeasedDecision } from './leased-decision.ts';
import type { Pair } from './pair.ts';
import { Pairs } from './pairs.ts';

type Settle = (decision: Decision, cost: number) => MaybePromise<boolean>;

/** Decides from units that it charged ahead in a store (S32). */
export class LeaseStore {
  readonly #store: LimitStore;
  readonly #leaseMs: number;
  readonly #timers: Timers;
  readonly #wallClock: Clock;
  readonly #ledger: LeaseLedger;
  readonly #pairs: Pairs;
  readonly #ends: Ends;
  readonly #calls: LeaseCalls;

  constructor(store: LimitStore, parts: LeaseParts) {
    const { leaseMs, maxPairs, timers, wallClock, ledger } = parts;
    this.#store = store;
    this.#leaseMs = leaseMs;
    this.#timers = timers;
    this.#wallClock = wallClock;
    this.#ledger = ledger;
    this.#pairs = new Pairs(maxPairs);
    this.#ends = new Ends(timers, leaseMs, this.#onDue);
    this.#calls = new LeaseCalls(store, parts, this.#ends, this.#seen);
    ledger.addPairs(this.#pairs);
  }

  /** The store, with this in front of it. */
  decorated(): LimitStore {
    const store = decorateStore(this.#store, {
      consume: () => this.consume,
      settle: (settle) => (decision, cost) =>
        this.#settle(decision, cost, settle) ?? this.#raising(decision, cost, settle),
      undo: (undo) => (decision) => this.#settle(decision, 0, undo) ?? undo(decision),
      knownRejection: (knownRejection) => (account, route, windowSet, cost) =>
        (this.#pairs.find(account, route, windowSet.lane)?.left ?? 0) > 0
          ? undefined
          : knownRejection(account, route, windowSet, cost),
      settleOnce:
        (settleOnce) =>
        (decision, cost, ...rest) =>
          this.#raising(decision, cost, () => settleOnce(decision, cost, ...rest)),
      charge:
        (charge) =>
        (account, ...rest) =>
          this.#during({ account }, () => charge(account, ...rest)),
      reset: (reset) => (target) => this.#during(target, () => reset(target)),
      block:
        (block) =>
        (target, ...rest) =>
          this.#during(target, () => block(target, ...rest)),
      cooldown: (cooldown) => (target, command) => this.#during(target, () => cooldown(target, command)),
    });
    return Object.assign(store, { close: () => after(this.close(), () => this.#store.close?.()) });
  }

  /** A property, because it is called for each request. */
  readonly consume = (account: string, route: string, windowSet: WindowSet, cost: number): MaybePromise<Decision> => {
    const pair = this.#pairs.find(account, route, windowSet.lane);
    const now = this.#timers.now();
    if (
      pair !== undefined &&
      cost <= pair.left &&
      windowSet === pair.windowSet &&
      pair.isLive(now, this.#wallClock.now())
    ) {
      pair.left -= cost;
      pair.lastAt = now;
      pair.asked += cost;
      pair.taken += cost;
      this.#ledger.decisions++;
      if (pair.left < pair.low || now >= pair.renewAt) this.#calls.renew(pair, now);
      return new LeasedDecision(
        account,
        route,
        windowSet,
        cost,
        now + pair.offset,
        pair.charged as Counters,
        pair.left,
      );
    }
    return this.#ask(pair, account, route, windowSet, cost, now);
  };

  /** Gives everything back, also what calls bring that are under way. */
  close(): MaybePromise<void> {
    const ended = (): MaybePromise<void> => {
      this.#ends.stop();
      for (const pair of this.#pairs.matching(undefined, undefined)) this.#ledger.took(pair);
      return after(this.#calls.returns.flush(), () => this.#calls.returns.giveUp());
    };
    this.#calls.returns.retry();
    return after(this.#drop({}), () => after(this.#calls.settled(), ended));
  }

  #ask(
    found: Pair | undefined,
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    now: number,
  ): MaybePromise<Decision> {
    const pair = found ?? (windowSet.windows.length > 0 ? this.#watch(account, route, windowSet, now) : undefined);
    if (pair === undefined) return this.#store.consume(account, route, windowSet, cost);
    // The limit was adjusted.
    if (pair.windowSet !== windowSet) {
      const isHeld = pair.left > 0;
      const dropped = this.#drop(pair);
      pair.windowSet = windowSet;
      pair.charged = undefined;
      // What goes back must not count against the request.
      if (isHeld) return after(dropped, () => this.consume(account, route, windowSet, cost));
    }
    pair.isSeen = true;
    pair.lastAt = now;
    const wanted = pair.isAsking || this.#calls.isFailing ? 0 : pair.wanted(now, this.#leaseMs);
    pair.forgetAsked(now, this.#leaseMs);
    pair.asked += cost;
    const requests = Math.max(1, Math.floor((wanted - pair.left) / cost));
    // For one request, `consume` is enough, unless the call extends units that are left, or shows that the store answers.
    if (!pair.isAsking && (requests > 1 || pair.left > 0 || this.#calls.isFailing)) {
      const { left } = pair;
      const decided = this.#calls.lease(pair, cost, requests, wanted, now, false);
      return left > 0 ? after(decided, (decision) => this.#again(pair, left, decision)) : decided;
    }
    const decided = this.#store.consume(account, route, windowSet, cost);
    // A block of the account ends the leases of its other routes, too.
    return pair.left > 0 || this.#pairs.hasSeveral(account) ? after(decided, this.#seen) : decided;
  }

  /** Asks again about a request that the store rejected, if it may fit with what was left here. */
  #again(pair: Pair, left: number, decision: Decision): MaybePromise<Decision> {
    const { account, route, windowSet, cost, accepted, degraded, shown } = decision;
    if (accepted || degraded || shown === undefined || shown.remaining + left < cost) return decision;
    return after(this.#drop(pair), () => this.#store.consume(account, route, windowSet, cost));
  }

  #watch(account: string, route: string, windowSet: WindowSet, now: number): Pair | undefined {
    const pair = this.#pairs.add(account, route, windowSet, now);
    if (pair !== undefined) this.#ends.set(pair, this.#ends.momentOf(now));
    return pair;
  }

  /** Gives every unit of an account back if the store rejects its request because of a block. */
  readonly #seen = (decision: Decision): Decision => {
    if (decision.blocked !== undefined) void this.#drop({ account: decision.account });
    return decision;
  };

  /**
   * Settles a decision with the units that are left, if they were charged to the same instances; else undefined. What
   * they do not cover is charged in the store. Then none are left, so the next request asks the store.
   */
  #settle(decision: Decision, cost: number, settle: Settle): MaybePromise<boolean> | undefined {
    const { account, route, windowSet, accepted, degraded } = decision;
    const pair = this.#pairs.find(account, route, windowSet.lane);
    if (pair === undefined || pair.windowSet !== windowSet || !accepted || degraded) return undefined;
    const isSame =
      pair.isLive(this.#timers.now(), this.#wallClock.now()) && pair.hasInstancesOf(chargedOf(decision, 1));
    if (!isSame) return undefined;
    if (!decision.takeCharge()) return false;
    const raise = cost - decision.cost;
    if (raise < 0) this.#ledger.leased(pair, -raise);
    // What a request costs in the end is what the next lease needs room for.
    else pair.asked += raise;
    const covered = Math.min(raise, pair.left);
    pair.left -= covered;
    if (covered > 0) pair.taken += covered;
    if (covered === raise) return true;
    // The windows can be full now, beyond their max: a refund must not go into this lease any more.
    pair.endsAt = NEVER;
    decision.returnCharge();
    return settle(decision, cost - covered);
  }

  /** Settles in the store. A raised cost is a charge: no lease may outlive it, or it would admit what no longer fits. */
  #raising(decision: Decision, cost: number, settle: Settle): MaybePromise<boolean> {
    const { account, route, windowSet } = decision;
    if (cost > decision.cost)
      void this.#drop({ account, route: windowSet.allMethodsScope === 'account' ? undefined : route });
    return settle(decision, cost);
  }

  /** Makes a change that leases must not outlive: gives units back before it, and again what was leased meanwhile. */
  #during<Result>(target: ResetTarget, change: () => MaybePromise<Result>): MaybePromise<Result> {
    const dropAgain = (): void => void this.#drop(target);
    return after(this.#drop(target), () => {
      let changed: MaybePromise<Result>;
      try {
        changed = change();
      } catch (error) {
        dropAgain();
        throw error;
      }
      if (isPromise(changed)) return changed.finally(dropAgain);
      dropAgain();
      return changed;
    });
  }

  /** Gives the units back at once, also those that a call will bring that is under way. */
  #drop({ account, route }: ResetTarget): MaybePromise<void> {
    for (const pair of this.#pairs.matching(account, route)) {
      pair.epoch++;
      pair.asked = 0;
      this.#calls.giveBackAll(pair);
    }
    return this.#calls.returns.flush();
  }

  readonly #onDue = (pairs: readonly Pair[]): void => {
    const now = this.#timers.now();
    for (const pair of pairs) {
      const { isSeen, isAsking } = pair;
      if (isSeen || isAsking) this.#ends.set(pair, this.#ends.momentOf(now));
      else this.#pairs.delete(pair);
      pair.isSeen = false;
      if (isAsking) continue;
      const { taken } = pair;
      this.#ledger.took(pair);
      if (taken > 0) this.#calls.prolong(pair, now);
      else this.#calls.giveBackAll(pair);
    }
    this.#calls.returns.retry();
    after(this.#calls.returns.flush(), () => {
      if (this.#calls.returns.hasFailed) this.#ends.wake();
    });
  };
}
