import { isHeadgateError, type StoreUnavailableError } from '../base/errors.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { Clock } from '../core/clock.ts';
import type { Decision } from '../core/decision.ts';
import { type LeaseGrant, type LimitStore, MAX_LEASED_REQUESTS } from '../core/ports.ts';
import type { Timers } from '../core/timers.ts';
import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../core/window.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { Ends } from './ends.ts';
import type { LeaseLedger } from './lease-ledger.ts';
import type { Pair } from './pair.ts';
import { Returns } from './returns.ts';

/** The parts of a {@link LeaseCalls}, and of a store with leases. */
export interface LeaseParts {
  readonly leaseMs: number;
  readonly maxPairs: number;
  readonly timers: Timers;
  /** Shows that the machine was suspended: the monotonic clock may not count that time. */
  readonly wallClock: Clock;
  readonly ledger: LeaseLedger;
}

/** A failed call that gives units back is repeated for so long. */
const RETURN_MS = 10_000;
/** Both clocks round down to whole milliseconds, so a window may be over this much earlier than they say. */
const ROUNDING_MS = 1;
/** A pair is busy if its last request came within this part of a lease. */
const BUSY_PART = 4;
/** A smaller lease is not fetched before a request asks for it. */
const LEAST_PROLONGED = 2;
/** A lease is renewed this many trips before it ends. */
const TRIPS_BEFORE_END = 2;

/** A call for a lease that is under way. */
interface Asking {
  readonly pair: Pair;
  readonly windowSet: WindowSet;
  readonly cost: number;
  readonly requests: number;
  /** Units that this process should have then. */
  readonly wanted: number;
  readonly epoch: number;
  /** When the last request came: the lease ends `leaseMs` after it. */
  readonly lastAt: number;
  readonly sentAt: number;
  readonly wallSentAt: number;
  /** Whether no request waits for it. */
  readonly isAhead: boolean;
}

/** Calls of the store that bring units of leases, and that give them back. */
export class LeaseCalls {
  readonly #store: Required<LimitStore>;
  readonly #parts: LeaseParts;
  readonly #ends: Ends;
  readonly #seen: (decision: Decision) => Decision;
  readonly #underWay = new Set<Promise<unknown>>();
  /** How long a call takes, in milliseconds, smoothed. */
  #tripMs = 0;
  readonly returns: Returns;
  /** Whether the last call failed. Then units would only be lost. */
  isFailing = false;

  /** @param seen is called with each decision that a call brings */
  constructor(store: LimitStore, parts: LeaseParts, ends: Ends, seen: (decision: Decision) => Decision) {
    const { timers, ledger, maxPairs } = parts;
    this.#store = store as Required<LimitStore>;
    this.#parts = parts;
    this.#ends = ends;
    this.#seen = seen;
    this.returns = new Returns(store, timers.now, maxPairs, (unused, isGiven, error) =>
      ledger.ended(unused, unused.units, isGiven, error),
    );
  }

  /** Resolves when the calls for leases that are under way are over; never rejects. */
  settled(): MaybePromise<unknown> {
    return this.#underWay.size === 0 ? undefined : Promise.allSettled(this.#underWay);
  }

  /** Fetches the next lease in the background, if it is time. */
  renew(pair: Pair, now: number): void {
    if (pair.isAsking) return;
    if (now < pair.renewAt && pair.willLast(now)) {
      pair.low = Math.floor(pair.low / 2);
      return;
    }
    pair.low = 0;
    pair.renewAt = Number.POSITIVE_INFINITY;
    if (this.isFailing) return;
    const wanted = pair.wanted(now, this.#parts.leaseMs);
    pair.forgetAsked(now, this.#parts.leaseMs);
    // Nothing would be left of a lease that is too small: then the next request asks.
    if (wanted > 0) this.#leaseAhead(pair, wanted, now);
  }

  /**
   * Call it when a lease is over that requests used. Of a busy pair it fetches the next one, for all of them in one turn, so that
   * a store can send the calls together. Of others what is left goes back with the next {@link Returns.flush}.
   */
  prolong(pair: Pair, now: number): void {
    const { leaseMs } = this.#parts;
    const isBusy = now - pair.lastAt <= leaseMs / BUSY_PART && !this.isFailing;
    const wanted = isBusy ? pair.wanted(now, leaseMs) : 0;
    if (wanted < LEAST_PROLONGED) {
      this.giveBackAll(pair);
      return;
    }
    pair.forgetAsked(now, leaseMs);
    this.#leaseAhead(pair, wanted, now);
  }

  #leaseAhead(pair: Pair, wanted: number, now: number): void {
    try {
      const leased = this.lease(pair, 1, Math.max(1, wanted - pair.left), wanted, now, true);
      if (isPromise(leased)) leased.catch(() => {});
    } catch {
      // No request waits for the lease. If the store still fails, the next request that asks it reports the error.
    }
  }

  /**
   * Asks for a lease.
   * @param wanted units that this process should have then
   * @param isAhead whether no request waits for it
   * @returns the decision about the request that waits for it, or about a request that does not exist
   */
  lease(
    pair: Pair,
    cost: number,
    requests: number,
    wanted: number,
    now: number,
    isAhead: boolean,
  ): MaybePromise<Decision> {
    const { account, route, windowSet, epoch, lastAt } = pair;
    const asked = Math.min(requests, MAX_LEASED_REQUESTS);
    const wallSentAt = this.#parts.wallClock.now();
    const asking = { pair, windowSet, cost, requests: asked, wanted, epoch, lastAt, sentAt: now, wallSentAt, isAhead };
    pair.isAsking = true;
    const failed = (error: unknown): never => {
      this.#failed(asking, error);
      throw error;
    };
    try {
      const grant = this.#store.lease(account, route, windowSet, cost, asked);
      if (!isPromise(grant)) return this.#granted(asking, grant);
      const decided = grant.then((each) => this.#granted(asking, each), failed);
      this.#underWay.add(decided);
      const over = (): void => void this.#underWay.delete(decided);
      decided.then(over, over);
      return decided;
    } catch (error) {
      return failed(error);
    }
  }

  #failed(asking: Asking, error: unknown): void {
    const { pair, requests, sentAt } = asking;
    pair.isAsking = false;
    this.isFailing = true;
    pair.asked = 0;
    pair.askedSince = sentAt;
    this.#endIfOver(pair);
    // The store may have charged them, unless the call was never sent.
    if (isHeadgateError(error, 'store_unavailable') && !(error as StoreUnavailableError).sent) return;
    const units = unitsOf(asking, requests);
    this.#parts.ledger.leased(pair, units);
    this.#parts.ledger.ended(pair, units, false, error);
  }

  #granted(asking: Asking, { decision, granted }: LeaseGrant): Decision {
    const { pair } = asking;
    if (decision.degraded) {
      this.#failed(asking, undefined);
      return decision;
    }
    pair.isAsking = false;
    this.isFailing = false;
    const units = unitsOf(asking, granted);
    // Without new units, the ones that were left get a new end.
    if (decision.accepted && (units > 0 || pair.left > 0))
      this.#install(asking, decision, chargedOf(decision, granted), units);
    this.#endIfOver(pair);
    return this.#seen(decision);
  }

  /** Gives back the units that were left, if their lease is over and the next one did not come. */
  #endIfOver(pair: Pair): void {
    if (pair.left === 0 || pair.isLive(this.#parts.timers.now(), this.#parts.wallClock.now())) return;
    this.giveBackAll(pair);
    void this.returns.flush();
  }

  /** Makes units available that were just charged, with those that were left, or gives them back. */
  #install(asking: Asking, decision: Decision, charged: Counters, units: number): void {
    const { pair, windowSet, epoch, lastAt, sentAt, wallSentAt, wanted } = asking;
    const { decidedAt } = decision;
    const now = this.#parts.timers.now();
    this.#parts.ledger.leased(pair, units);
    const moment = this.#ends.momentOf(lastAt);
    const endsAt = Math.min(moment, sentAt + firstEndOf(windowSet, charged) - decidedAt - ROUNDING_MS);
    const wallEndsAt = wallSentAt + endsAt - sentAt;
    const isInTime = now < endsAt && this.#parts.wallClock.now() < wallEndsAt;
    if (!isInTime || epoch !== pair.epoch) {
      const offset = decidedAt - now;
      this.#giveBack({ account: pair.account, route: pair.route, windowSet, charged, decidedAt, offset }, units);
      void this.returns.flush();
      return;
    }
    if (!pair.hasInstancesOf(charged)) this.giveBackAll(pair);
    this.#parts.ledger.took(pair);
    pair.left += units;
    pair.charged = charged;
    pair.decidedAt = decidedAt;
    pair.offset = decidedAt - now;
    const tooMany = pair.left - Math.max(wanted, units);
    if (tooMany > 0) {
      // Requests became fewer.
      pair.left -= tooMany;
      this.#giveBack(pair, tooMany);
    }
    pair.units = pair.left;
    pair.beganAt = now;
    pair.endsAt = endsAt;
    pair.wallEndsAt = wallEndsAt;
    this.#tripMs += (now - sentAt - this.#tripMs) / (this.#tripMs === 0 ? 1 : 4);
    pair.low = Math.ceil(pair.left / 2);
    pair.renewAt = endsAt - Math.min((endsAt - now) / 2, TRIPS_BEFORE_END * this.#tripMs + ROUNDING_MS);
    pair.isSeen = true;
    this.#ends.set(pair, moment);
  }

  /** Ends the lease of a pair. What is left goes back with the next {@link Returns.flush}. */
  giveBackAll(pair: Pair): void {
    const { left } = pair;
    pair.left = 0;
    pair.endsAt = NEVER;
    if (left > 0) this.#giveBack(pair as Pair & { charged: Counters }, left);
  }

  #giveBack(
    lease: Pick<Pair, 'account' | 'route' | 'windowSet' | 'charged' | 'decidedAt' | 'offset'>,
    units: number,
  ): void {
    const { account, route, windowSet, decidedAt, offset } = lease;
    const charged = lease.charged as Counters;
    const localUntil = this.#parts.timers.now() + RETURN_MS;
    const until = localUntil + offset;
    if (units > 0) this.returns.add({ account, route, windowSet, charged, decidedAt, units, until, localUntil });
  }
}

/** The units for later requests: the request that waits for the call takes its own. */
function unitsOf({ cost, isAhead }: Asking, requests: number): number {
  return (requests - (isAhead ? 0 : 1)) * cost;
}

/** The counters after all granted requests were charged. */
export function chargedOf(decision: Decision, granted: number): Counters {
  const { trace, cost } = decision;
  const counters = new Float64Array(trace.length * SLOTS_PER_WINDOW);
  for (const [i, { startedAt = NEVER, max, remaining }] of trace.entries()) {
    counters[i * SLOTS_PER_WINDOW] = startedAt;
    counters[i * SLOTS_PER_WINDOW + 1] = max - remaining + (granted - 1) * cost;
  }
  return counters;
}

/** When the first of the instances ends. */
function firstEndOf({ durations }: WindowSet, counters: Counters): number {
  let first = Number.POSITIVE_INFINITY;
  for (let i = 0; i < durations.length; i++)
    first = Math.min(first, (counters[i * SLOTS_PER_WINDOW] as number) + (durations[i] as number));
  return first;
}
