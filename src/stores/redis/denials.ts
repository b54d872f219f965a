import { LRUCache } from 'lru-cache';
import { Decision } from '../../core/decision.ts';
import type { Plan } from '../../core/plan.ts';
import type { Counters } from '../../core/window.ts';

/** A rejection that is certain until a known time, because a full window stays full until it ends (S20). */
interface Denial {
  readonly plan: Plan;
  readonly decidedAt: number;
  readonly rejectedBy: number;
  readonly counters: Counters;
  /** When the reply arrived, on this process's clock. Times of two clocks are never compared, only elapsed times. */
  readonly receivedAt: number;
  readonly until: number;
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
 * Rejections that can be repeated without asking Redis. Bounded. Expired ones are deleted when they are found, or when
 * room is needed, so the cache is never scanned.
 */
export class Denials {
  readonly #byPair: LRUCache<string, Denial | Forgotten>;
  readonly #maxMs: number;
  #clearedAt = Number.NEGATIVE_INFINITY;
  #hits = 0;

  constructor({ maxMs, maxKeys }: DenialsOptions) {
    this.#maxMs = maxMs;
    this.#byPair = new LRUCache({ max: maxKeys });
  }

  /** Number of decisions that were made here. */
  get hits(): number {
    return this.#hits;
  }

  /** Returns the rejection as it is at `now` (on this process's clock), or undefined. */
  get(key: string, account: string, route: string, plan: Plan, cost: number, now: number): Decision | undefined {
    const denial = this.#byPair.get(key);
    if (denial === undefined || 'forgottenAt' in denial) return undefined;
    if (now >= denial.until) {
      this.#byPair.delete(key);
      return undefined;
    }
    // Another plan can have another max (S10).
    if (denial.plan !== plan) return undefined;
    this.#hits++;
    // The server decided between sending and receiving. Counting from the later one, the wait shown is never too short
    // (S7).
    const decidedAt = denial.decidedAt + Math.floor(now - denial.receivedAt);
    return new Decision(account, route, plan, cost, decidedAt, denial.rejectedBy, denial.counters);
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
    const { shown, plan, decidedAt } = decision;
    // If the window has room left, a request with a lower cost could still fit.
    if (this.#maxMs === 0 || shown === undefined || shown.remaining > 0) return;
    if (sentAt <= this.#clearedAt) return;
    const known = this.#byPair.peek(key);
    if (known !== undefined && 'forgottenAt' in known && sentAt <= known.forgottenAt) return;
    const until = sentAt + Math.min(shown.resetMs, this.#maxMs);
    this.#byPair.set(key, { plan, decidedAt, rejectedBy, counters, receivedAt, until });
  }

  /** Forgets a rejection, and ignores the replies to checks that were sent until `now`. */
  forget(key: string, now: number): void {
    this.#byPair.set(key, { forgottenAt: now });
  }

  /** Forgets all rejections, and ignores the replies to checks that were sent until `now`. */
  clear(now: number): void {
    this.#byPair.clear();
    this.#clearedAt = now;
  }
}
