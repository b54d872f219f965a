import { LRUCache } from 'lru-cache';
import { Decision } from '../../core/decision.ts';
import type { Plan } from '../../core/plan.ts';
import type { Counters } from '../../core/window.ts';

/** A rejection that is certain until a moment: a rolling fixed window that is full stays full until it ends (S20). */
interface Denial {
  readonly plan: Plan;
  readonly decidedAt: number;
  readonly rejectedBy: number;
  readonly counters: Counters;
  /** On this process's clock, when the answer came: two clocks are never compared, only their running. */
  readonly heardAt: number;
  readonly until: number;
}

/** Left in a rejection's place: answers to checks that were sent before `forgottenAt` were already out of date when they came. */
interface Forgotten {
  readonly forgottenAt: number;
}

/** Options of {@link Denials}. */
export interface DenialsOptions {
  readonly maxMs: number;
  readonly maxKeys: number;
}

/** Rejections that need not be asked again. Bounded; what is over leaves when it is met or when its place is needed, so nothing is ever scanned. */
export class Denials {
  readonly #byPair: LRUCache<string, Denial | Forgotten>;
  readonly #maxMs: number;
  #clearedAt = Number.NEGATIVE_INFINITY;
  #hits = 0;

  constructor({ maxMs, maxKeys }: DenialsOptions) {
    this.#maxMs = maxMs;
    this.#byPair = new LRUCache({ max: maxKeys });
  }

  /** Decisions that were answered here. */
  get hits(): number {
    return this.#hits;
  }

  /** The rejection as it stands at `now` on this process's clock, or undefined. */
  get(key: string, account: string, route: string, plan: Plan, cost: number, now: number): Decision | undefined {
    const denial = this.#byPair.get(key);
    if (denial === undefined || 'forgottenAt' in denial) return undefined;
    if (now >= denial.until) {
      this.#byPair.delete(key);
      return undefined;
    }
    // Another plan may have another max (S10).
    if (denial.plan !== plan) return undefined;
    this.#hits++;
    // The server decided between the sending and the hearing: by the later one, the wait that is shown is never too short (S7).
    const decidedAt = denial.decidedAt + Math.floor(now - denial.heardAt);
    return new Decision(account, route, plan, cost, decidedAt, denial.rejectedBy, denial.counters);
  }

  /** @param sentAt when the check was sent and `heardAt` when its answer came, on this process's clock */
  remember(
    key: string,
    decision: Decision,
    rejectedBy: number,
    counters: Counters,
    sentAt: number,
    heardAt: number,
  ): void {
    const { shown, plan, decidedAt } = decision;
    // With something left in the window, a request of a lower cost could still fit.
    if (this.#maxMs === 0 || shown === undefined || shown.remaining > 0) return;
    if (sentAt <= this.#clearedAt) return;
    const known = this.#byPair.peek(key);
    if (known !== undefined && 'forgottenAt' in known && sentAt <= known.forgottenAt) return;
    const until = sentAt + Math.min(shown.resetMs, this.#maxMs);
    this.#byPair.set(key, { plan, decidedAt, rejectedBy, counters, heardAt, until });
  }

  /** Forgets a rejection, and the answers still on their way to checks that were sent until `now`. */
  forget(key: string, now: number): void {
    this.#byPair.set(key, { forgottenAt: now });
  }

  /** Forgets all, likewise. */
  clear(now: number): void {
    this.#byPair.clear();
    this.#clearedAt = now;
  }
}
