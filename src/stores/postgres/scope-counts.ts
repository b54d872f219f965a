import { LRUCache } from 'lru-cache';
import { monotonicClock } from '../../core/clock.ts';

/** How often a full scope is counted again, at most. */
const FULL_MS = 1_000;
/** A count can take long. The next count waits so many times as long. */
const PAUSE = 10;
/** A scope is counted again after this part of its share was added here. */
const PART = 64;
/** Scopes that a process knows. Past it the scopes that were unused for longest are counted again. */
const MAX_SCOPES = 10_000;

/** A count of the table. */
export interface ScopeCount {
  readonly claims: number;
  /** Milliseconds until the first claim expires; undefined without a claim. */
  readonly firstEndMs: number | undefined;
}

interface Share {
  /** Claims of the scope at the last count, and claims that this process added since. */
  claims: number;
  uncounted: number;
  /** When it may be counted again, although it is full. */
  recountAt: number;
  /** When the first claim of the scope expires, as a wait. */
  retryAfterMs: number;
  isCounting: boolean;
}

/**
 * Counts the claims of each scope (I13). A count in every begin would cost more than the begin, so each process counts
 * the claims of a scope from time to time, beside its commands.
 */
export class ScopeCounts {
  readonly #max: number;
  readonly #count: (scope: string) => Promise<ScopeCount>;
  /** With `max`, it would make room for all scopes at once, in a millisecond. */
  readonly #shares = new LRUCache<string, Share>({ maxSize: MAX_SCOPES, sizeCalculation: () => 1 });

  /** @param count counts the claims of a scope, up to `max` */
  constructor(max: number, count: (scope: string) => Promise<ScopeCount>) {
    this.#max = max;
    this.#count = count;
  }

  isFull(scope: string): boolean {
    const share = this.#shares.get(scope);
    if (share === undefined || share.claims < this.#max) return false;
    if (monotonicClock.now() >= share.recountAt) void this.#recount(scope, share);
    return true;
  }

  /** About how long until a claim of a full scope expires. */
  retryAfterMs(scope: string): number {
    return this.#shares.get(scope)?.retryAfterMs ?? FULL_MS;
  }

  /** Notes a new claim. */
  added(scope: string): void {
    const known = this.#shares.get(scope);
    const share = known ?? { claims: 0, uncounted: 0, recountAt: 0, retryAfterMs: FULL_MS, isCounting: false };
    if (known === undefined) this.#shares.set(scope, share);
    share.claims++;
    share.uncounted++;
    if (known === undefined || share.uncounted * PART >= this.#max) void this.#recount(scope, share);
  }

  async #recount(scope: string, share: Share): Promise<void> {
    if (share.isCounting) return;
    share.isCounting = true;
    const begunAt = monotonicClock.now();
    const before = share.uncounted;
    try {
      const { claims, firstEndMs } = await this.#count(scope);
      share.uncounted -= before;
      // Perhaps without the claims that were added meanwhile: to refuse a key that has room would be worse.
      share.claims = claims;
      if (firstEndMs !== undefined) share.retryAfterMs = Math.max(1, firstEndMs);
    } catch {
      // The last count applies until the next one.
    }
    const now = monotonicClock.now();
    share.recountAt = now + Math.max(FULL_MS, PAUSE * (now - begunAt));
    share.isCounting = false;
  }
}
