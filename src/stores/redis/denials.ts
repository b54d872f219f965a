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
  /** On this process's clock, when the check was sent: two clocks are never compared, only their running. */
  readonly sentAt: number;
  readonly until: number;
}

/** Options of {@link Denials}. */
export interface DenialsOptions {
  readonly maxMs: number;
  readonly maxKeys: number;
}

/** Rejections that need not be asked again. Bounded; what is over leaves when it is met or when its place is needed, so nothing is ever scanned. */
export class Denials {
  readonly #byPair: LRUCache<string, Denial>;
  readonly #maxMs: number;
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
    if (denial === undefined) return undefined;
    if (now >= denial.until) {
      this.#byPair.delete(key);
      return undefined;
    }
    // Another plan may have another max (S10).
    if (denial.plan !== plan) return undefined;
    this.#hits++;
    const decidedAt = denial.decidedAt + Math.floor(now - denial.sentAt);
    return new Decision(account, route, plan, cost, decidedAt, denial.rejectedBy, denial.counters);
  }

  remember(key: string, decision: Decision, rejectedBy: number, counters: Counters, sentAt: number): void {
    const { shown, plan, decidedAt } = decision;
    // With something left in the window, a request of a lower cost could still fit.
    if (this.#maxMs === 0 || shown === undefined || shown.remaining > 0) return;
    const until = sentAt + Math.min(shown.resetMs, this.#maxMs);
    this.#byPair.set(key, { plan, decidedAt, rejectedBy, counters, sentAt, until });
  }

  forget(key: string): void {
    this.#byPair.delete(key);
  }

  clear(): void {
    this.#byPair.clear();
  }
}
