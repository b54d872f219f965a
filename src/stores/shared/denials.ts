import { LRUCache } from 'lru-cache';
import type { Block } from '../../core/block.ts';
import { BlockedDecision } from '../../core/blocked-decision.ts';
import { monotonicClock } from '../../core/clock.ts';
import { Decision } from '../../core/decision.ts';
import type { Counters } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';

/** A rejection that is certain until a known time, because a full window or a block stays until it ends (S20). */
interface Denial {
  readonly windowSet: WindowSet;
  readonly decidedAt: number;
  readonly rejectedBy: number;
  readonly counters: Counters;
  /** Set if not a window, but a block rejected. */
  readonly block: Block | undefined;
  /** When the reply arrived, on this process's clock. Times of two clocks are never compared, only elapsed times. */
  readonly receivedAt: number;
  /** When the check was sent, on this process's clock. */
  readonly sentAt: number;
  readonly until: number;
  /** The rejection of another lane, whose maxes differ (S28). */
  readonly next: Denial | undefined;
}

/** The counters or the block that change: those of a pair, of an account, those that its routes share, or all. */
export interface Changed {
  /** The key of the pair. */
  readonly pair?: string | undefined;
  readonly account?: string | undefined;
  /** The account whose routes share the counters. Rejections by other counters of it stay certain (S33). */
  readonly shared?: string | undefined;
}

/** Replaces a rejection that was forgotten. Replies to checks that were sent before `forgottenAt` are out of date. */
interface Forgotten {
  readonly forgottenAt: number;
}

/** Options of {@link Denials}. */
export interface DenialsOptions {
  readonly maxMs: number;
  readonly maxKeys: number;
}

/**
 * Rejections that can be repeated without asking the server. Bounded. Expired ones are deleted when they are found, or when
 * room is needed, so the cache is never scanned.
 */
export class Denials {
  readonly #byPair: LRUCache<string, Denial | Forgotten>;
  readonly #maxMs: number;
  readonly #maxKeys: number;
  /** For each account whose rejections were forgotten, when that was, since all were. Bounded by `maxKeys`. */
  readonly #forgottenAccounts = new Map<string, number>();
  /** The same for rejections of window sets whose All methods all routes of the account share. */
  readonly #forgottenShared = new Map<string, number>();
  #clearedAt = Number.NEGATIVE_INFINITY;
  #hits = 0;

  constructor({ maxMs, maxKeys }: DenialsOptions) {
    this.#maxMs = maxMs;
    this.#maxKeys = maxKeys;
    // The cache makes room for all keys at once, in some milliseconds. Without a time, it remembers none.
    this.#byPair = new LRUCache({ max: maxMs === 0 ? 1 : maxKeys });
  }

  /** Number of decisions that were made here. */
  get hits(): number {
    return this.#hits;
  }

  /** Returns the rejection as it is at `now` (on this process's clock), or undefined. */
  get(
    key: string,
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    now: number,
  ): Decision | undefined {
    const first = this.#byPair.get(key);
    if (first === undefined || 'forgottenAt' in first) return undefined;
    let denial: Denial | undefined = first;
    // The max of another window set can differ (S10).
    while (denial !== undefined && denial.windowSet !== windowSet) denial = denial.next;
    if (denial === undefined) return undefined;
    if (now >= denial.until || this.#isForgotten(account, windowSet, denial.sentAt)) {
      this.#byPair.delete(key);
      return undefined;
    }
    this.#hits++;
    // The server decided between sending and receiving. Counting from the later one, the wait shown is never too short
    // (S7).
    const ageMs = Math.floor(now - denial.receivedAt);
    const decidedAt = denial.decidedAt + ageMs;
    const { block } = denial;
    if (block !== undefined) {
      const left = { ...block, forMs: block.forMs - ageMs };
      return new BlockedDecision(account, route, windowSet, cost, decidedAt, left);
    }
    return new Decision(account, route, windowSet, cost, decidedAt, denial.rejectedBy, denial.counters);
  }

  /** @param sentAt when the check was sent, on this process's clock; `receivedAt` is when its reply arrived */
  remember(
    key: string,
    decision: Decision,
    rejectedBy: number,
    counters: Counters,
    sentAt: number,
    receivedAt: number,
  ): void {
    const { account, shown, windowSet, decidedAt, blocked: block } = decision;
    // If room is left in the window, a request with a lower cost could still fit.
    const certainMs = shown === undefined || shown.remaining > 0 ? block?.forMs : shown.resetMs;
    if (this.#maxMs === 0 || certainMs === undefined) return;
    if (sentAt <= this.#clearedAt || this.#isForgotten(account, windowSet, sentAt)) return;
    const known = this.#byPair.peek(key);
    if (known !== undefined && 'forgottenAt' in known && sentAt <= known.forgottenAt) return;
    const until = sentAt + Math.min(certainMs, this.#maxMs);
    const next = known === undefined || 'forgottenAt' in known ? undefined : withoutLane(known, windowSet.lane);
    this.#byPair.set(key, { windowSet, decidedAt, rejectedBy, counters, block, receivedAt, sentAt, until, next });
  }

  /**
   * Runs `change`. Forgets rejections before it, and again after it, because replies sent before it are out of date.
   */
  async forgetDuring<T>({ pair, account, shared }: Changed, change: () => Promise<T>): Promise<T> {
    const forget = (): void => {
      const now = monotonicClock.now();
      if (pair !== undefined) this.forget(pair, now);
      else if (shared !== undefined) this.#forgetAll(this.#forgottenShared, shared, now);
      else if (account !== undefined) this.#forgetAll(this.#forgottenAccounts, account, now);
      else this.clear(now);
    };
    forget();
    try {
      return await change();
    } finally {
      forget();
    }
  }

  /** Forgets a rejection, and ignores the replies to checks that were sent until `now`. */
  forget(key: string, now: number): void {
    this.#byPair.set(key, { forgottenAt: now });
  }

  /** Forgets the rejections of an account, and ignores the replies to checks that were sent until `now`. */
  #forgetAll(forgotten: Map<string, number>, account: string, now: number): void {
    if (this.#maxMs === 0) return;
    if (forgotten.size >= this.#maxKeys) this.clear(now);
    else forgotten.set(account, now);
  }

  #isForgotten(account: string, { allMethodsScope }: WindowSet, sentAt: number): boolean {
    const ofAccount = this.#forgottenAccounts.get(account) ?? Number.NEGATIVE_INFINITY;
    const shared = allMethodsScope === 'account' ? this.#forgottenShared.get(account) : undefined;
    return sentAt <= Math.max(ofAccount, shared ?? ofAccount);
  }

  /** Forgets all rejections, and ignores the replies to checks that were sent until `now`. */
  clear(now: number): void {
    this.#byPair.clear();
    this.#forgottenAccounts.clear();
    this.#forgottenShared.clear();
    this.#clearedAt = now;
  }
}

/** The rejections of other lanes: each lane has one, so there are at most as many as lanes. */
function withoutLane(denial: Denial | undefined, lane: string | undefined): Denial | undefined {
  if (denial === undefined) return undefined;
  const next = withoutLane(denial.next, lane);
  if (denial.windowSet.lane === lane) return next;
  return next === denial.next ? denial : { ...denial, next };
}
