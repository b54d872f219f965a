import { type Counters, isOver, NEVER, SLOTS_PER_WINDOW } from '../core/window.ts';
import type { WindowSet } from '../core/window-set.ts';

/** If requests come at random, so many standard deviations more than usual are rare: a lease has room for them. */
const DEVIATIONS = 2;
/** With fewer units per lease, a pair has none: what it would give back costs as much as it saves. */
const LEAST_USE = 1;
/** A lease takes at most this part of what remains, so that the last units are asked for one by one. */
const PART_OF_REMAINING = 8;
/** A burst shows no speed: what was seen within this part of a lease counts as if it took this part. */
const SHORTEST_PART = 8;
/** A lease is at most so many times the units that were asked for so far, so it grows with what is seen. */
const MOST_GROWTH = 4;

/** The units of one (account, route), or of a lane of it, that this process may grant, and how many its requests ask for. */
export class Pair {
  readonly account: string;
  readonly route: string;
  windowSet: WindowSet;

  /** Units that the store charged, and that no request took. They can be left when the lease is over. */
  left = 0;
  /** Until when they may be granted, on the monotonic clock and on the wall clock. */
  endsAt = NEVER;
  wallEndsAt = NEVER;
  /** The next lease is fetched if fewer units are left, or from this time on. */
  low = 0;
  renewAt = Number.POSITIVE_INFINITY;
  /** The store's time minus that of the monotonic clock. */
  offset = 0;
  /** When the store charged the lease, on its clock. */
  decidedAt = 0;
  /** The counters after that; undefined before the first lease. Never modified, because decisions read them. */
  charged: Counters | undefined;
  /** When the lease began, and with how many units. */
  beganAt = 0;
  units = 0;

  /** When the last request came. */
  lastAt = NEVER;
  /** Units that requests asked for since a time. */
  asked = 0;
  askedSince: number;
  /** Units that were taken since the last event. */
  taken = 0;

  /** Whether a call for a lease is under way. */
  isAsking = false;
  /** Rises with each change that makes what a call brings out of date. */
  epoch = 0;
  /** When the pair is looked at next. */
  dueAt = NEVER;
  /** Whether there was a request since it was looked at. */
  isSeen = false;

  constructor(account: string, route: string, windowSet: WindowSet, now: number) {
    this.account = account;
    this.route = route;
    this.windowSet = windowSet;
    this.askedSince = now;
  }

  /** Whether requests may take units now. */
  isLive(now: number, wallNow: number): boolean {
    return now < this.endsAt && wallNow < this.wallEndsAt;
  }

  /** Units that this process should have for a whole lease from now on; at most a part of what remains. */
  wanted(now: number, leaseMs: number): number {
    const elapsedMs = Math.max(now - this.askedSince, leaseMs / SHORTEST_PART);
    const usual = (this.asked * leaseMs) / elapsedMs;
    if (usual < LEAST_USE) return 0;
    const ahead = Math.min(this.asked * MOST_GROWTH, usual + DEVIATIONS * Math.sqrt(usual));
    return Math.floor(Math.min(ahead, this.#remaining(now) / PART_OF_REMAINING));
  }

  /** Forgets what it saw longer ago than a lease. */
  forgetAsked(now: number, leaseMs: number): void {
    if (now - this.askedSince < leaseMs) return;
    this.asked = 0;
    this.askedSince = now;
  }

  /** Whether the units will last until the lease ends, at the speed so far. */
  willLast(now: number): boolean {
    return this.left * (now - this.beganAt) >= (this.units - this.left) * (this.endsAt - now);
  }

  /** Whether counters are of the instances that the units were charged to. */
  hasInstancesOf(counters: ArrayLike<number>): boolean {
    const { charged } = this;
    if (charged === undefined || charged.length !== counters.length) return false;
    for (let i = 0; i < charged.length; i += SLOTS_PER_WINDOW) if (charged[i] !== counters[i]) return false;
    return true;
  }

  /** The least that remains in a window, as far as this process knows. */
  #remaining(now: number): number {
    const { maxes, durations } = this.windowSet;
    const { charged } = this;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < maxes.length; i++) {
      const at = i * SLOTS_PER_WINDOW;
      const hasCount =
        charged !== undefined && !isOver(charged[at] as number, durations[i] as number, now + this.offset);
      least = Math.min(least, (maxes[i] as number) - (hasCount ? (charged[at + 1] as number) : 0));
    }
    return least;
  }
}
