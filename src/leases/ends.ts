import type { Timers } from '../core/timers.ts';
import type { Pair } from './pair.ts';

/** Leases end at this many moments per lease, so that what is left of many goes back together. */
const MOMENTS = 8;

/** Calls back when pairs are due, with one timer for all. */
export class Ends {
  readonly #timers: Timers;
  readonly #leaseMs: number;
  readonly #momentMs: number;
  readonly #onDue: (pairs: readonly Pair[]) => void;
  readonly #due = new Map<number, Pair[]>();
  #timerAt: number | undefined;
  #cancel: () => void = () => {};

  constructor(timers: Timers, leaseMs: number, onDue: (pairs: readonly Pair[]) => void) {
    this.#timers = timers;
    this.#leaseMs = leaseMs;
    this.#momentMs = Math.floor(leaseMs / MOMENTS);
    this.#onDue = onDue;
  }

  /** The last moment of a lease that begins now: within `leaseMs`, and not before 7/8 of it are over. */
  momentOf(now: number): number {
    const end = now + this.#leaseMs;
    return end - (end % this.#momentMs);
  }

  /** Calls back with the pair at a moment. An earlier call for it is left out. */
  set(pair: Pair, moment: number): void {
    if (pair.dueAt === moment) return;
    pair.dueAt = moment;
    const pairs = this.#due.get(moment);
    if (pairs === undefined) this.#due.set(moment, [pair]);
    else pairs.push(pair);
    this.#arm(moment);
  }

  /** Calls back at the next moment, if only without a pair. */
  wake(): void {
    const next = this.#timers.now() + this.#momentMs;
    this.#arm(next - (next % this.#momentMs));
  }

  stop(): void {
    this.#cancel();
    this.#timerAt = undefined;
    this.#due.clear();
  }

  #arm(moment: number): void {
    if (this.#timerAt !== undefined && this.#timerAt <= moment) return;
    this.#cancel();
    this.#timerAt = moment;
    this.#cancel = this.#timers.after(Math.max(1, moment - this.#timers.now()), () => this.#fire(), true);
  }

  #fire(): void {
    this.#timerAt = undefined;
    const now = this.#timers.now();
    const found: Pair[] = [];
    for (const [moment, pairs] of this.#due) {
      if (moment > now) continue;
      this.#due.delete(moment);
      for (const pair of pairs) if (pair.dueAt === moment) found.push(pair);
    }
    this.#onDue(found);
    if (this.#due.size > 0) this.#arm(Math.min(...this.#due.keys()));
  }
}
