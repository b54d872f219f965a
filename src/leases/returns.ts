import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { Decision, FITS } from '../core/decision.ts';
import type { LimitStore } from '../core/ports.ts';
import type { Counters } from '../core/window.ts';
import type { WindowSet } from '../core/window-set.ts';
import { base64url } from '../http/platform.ts';

/** Units that nothing uses any more. */
export interface Unused {
  readonly account: string;
  readonly route: string;
  readonly windowSet: WindowSet;
  /** The counters when they were charged, which name the instances. */
  readonly charged: Counters;
  readonly decidedAt: number;
  readonly units: number;
  /** The last time at which they may go back, on the store's clock and on this process's. */
  readonly until: number;
  readonly localUntil: number;
}

/**
 * How many are on their way at the same time: as many as a store takes per millisecond that it needs for an answer, within
 * bounds. So requests need not wait for many of them, and they do not pile up if the store is a region away.
 */
const PER_MS = 64;
const MOST_AT_ONCE = 1_024;
const PREFIX_BYTES = 12;
const COUNTER_DIGITS = 6;
const MOST_IDS = 36 ** COUNTER_DIGITS;

interface Waiting {
  readonly unused: Unused;
  /** Because of it, the store gives the units back once, also if a client library or this process repeats the call. */
  readonly receipt: string;
  /** Why the call failed. */
  readonly error?: unknown;
}

/** Gives units back to the instances that they were charged to, several in one turn. A failed call is repeated later. */
export class Returns {
  readonly #store: Required<LimitStore>;
  readonly #now: () => number;
  readonly #onEnd: (unused: Unused, isGiven: boolean, error?: unknown) => void;
  readonly #most: number;
  #waiting: Waiting[] = [];
  #failed: Waiting[] = [];
  #sending: Promise<void> | undefined;
  #atOnce = PER_MS;
  #prefix = '';
  #ids = MOST_IDS;

  /**
   * @param most how many of them wait at most
   * @param onEnd is called when the store gave them back, and when it can do so no longer
   */
  constructor(
    store: LimitStore,
    now: () => number,
    most: number,
    onEnd: (unused: Unused, isGiven: boolean, error?: unknown) => void,
  ) {
    this.#store = store as Required<LimitStore>;
    this.#now = now;
    this.#most = most;
    this.#onEnd = onEnd;
  }

  /** Whether calls failed that can be repeated. */
  get hasFailed(): boolean {
    return this.#failed.length > 0;
  }

  add(unused: Unused): void {
    this.#waiting.push({ unused, receipt: this.#newReceipt() });
  }

  /** Also repeats the calls that failed, at the next {@link flush}. */
  retry(): void {
    this.#waiting.push(...this.#failed);
    this.#failed = [];
  }

  /** Gives up the calls that failed: their units are lost. */
  giveUp(): void {
    for (const { unused, error } of this.#failed.splice(0)) this.#onEnd(unused, false, error);
  }

  /** Sends everything that waits. Resolves when the store has answered; never rejects. */
  flush(): MaybePromise<void> {
    if (this.#sending !== undefined) return this.#sending;
    while (this.#waiting.length > 0) {
      const sentAt = this.#now();
      const pending = this.#waiting
        .splice(0, this.#atOnce)
        .map((each) => this.#send(each))
        .filter(isPromise);
      if (pending.length === 0) continue;
      this.#sending = Promise.all(pending).then(() => {
        this.#sending = undefined;
        this.#atOnce = Math.min(MOST_AT_ONCE, Math.max(1, this.#now() - sentAt) * PER_MS);
        return this.flush();
      });
      return this.#sending;
    }
  }

  #send(waiting: Waiting): MaybePromise<void> {
    const { account, route, windowSet, units, decidedAt, charged, until, localUntil } = waiting.unused;
    if (this.#now() > localUntil) return this.#onEnd(waiting.unused, false, waiting.error);
    const decision = new Decision(account, route, windowSet, units, decidedAt, FITS, charged);
    const given = (): void => this.#onEnd(waiting.unused, true);
    const failed = (error: unknown): void => {
      if (this.#now() < localUntil && this.#failed.length < this.#most)
        this.#failed.push({ unused: waiting.unused, receipt: waiting.receipt, error });
      else this.#onEnd(waiting.unused, false, error);
    };
    try {
      // A call of a synchronous store is never repeated, and a receipt would take room from those of users.
      const settled = this.#store.synchronous
        ? this.#store.settle(decision, 0)
        : this.#store.settleOnce(decision, 0, waiting.receipt, until);
      if (isPromise(settled)) return settled.then(given, failed);
      given();
    } catch (error) {
      failed(error);
    }
  }

  /** 22 characters: a random prefix, and a number. */
  #newReceipt(): string {
    if (this.#ids >= MOST_IDS) {
      this.#prefix = base64url(crypto.getRandomValues(new Uint8Array(PREFIX_BYTES)));
      this.#ids = 0;
    }
    return this.#prefix + (this.#ids++).toString(36).padStart(COUNTER_DIGITS, '0');
  }
}
