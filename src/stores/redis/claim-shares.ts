import { LRUCache } from 'lru-cache';

/** Most scopes that are counted. Past it the scopes that have been unused for longest are counted from 0 again. */
const MAX_SCOPES = 10_000;
/** Buckets per lifetime, about: a claim is counted for at most a sixteenth of its lifetime longer than it lives. */
const BUCKETS_PER_LIFETIME = 16;

/**
 * The number of claims by when they expire, in buckets: a few numbers per scope, whatever the number of claims. Claims
 * are never looked up again, so the numbers are approximate.
 */
class ExpiringCount {
  /** Number of claims by the end of their bucket, in the order in which the buckets were made. */
  readonly #buckets = new Map<number, number>();
  #total = 0;

  total(now: number): number {
    for (const [end, count] of this.#buckets) {
      if (now < end) continue;
      this.#buckets.delete(end);
      this.#total -= count;
    }
    return this.#total;
  }

  add(lifetimeMs: number, now: number): void {
    // A power of two, so that lifetimes of about the same length share their buckets.
    const width = 2 ** Math.ceil(Math.log2(Math.max(1, lifetimeMs / BUCKETS_PER_LIFETIME)));
    const end = Math.ceil((now + lifetimeMs) / width) * width;
    this.#buckets.set(end, (this.#buckets.get(end) ?? 0) + 1);
    this.#total++;
  }

  /** Takes one claim away, from the newest bucket: claims are mostly released soon after they were made. */
  remove(): void {
    const newest = [...this.#buckets.keys()].at(-1);
    if (newest === undefined) return;
    const count = (this.#buckets.get(newest) as number) - 1;
    this.#total--;
    if (count === 0) this.#buckets.delete(newest);
    else this.#buckets.set(newest, count);
  }

  /** Milliseconds until the first bucket ends. */
  nextEndMs(now: number): number {
    return Math.max(1, Math.min(...this.#buckets.keys()) - now);
  }
}

interface Share {
  /** Claims that are in progress or completed. */
  readonly stored: ExpiringCount;
  readonly released: ExpiringCount;
}

/**
 * Counts the claims of each scope that this process began and that have not expired (I13). Other processes count for
 * themselves.
 */
export class ClaimShares {
  readonly #maxPerScope: number;
  readonly #maxReleased: number;
  /** With `max`, it would make room for all scopes at once, in a millisecond. */
  readonly #scopes = new LRUCache<string, Share>({ maxSize: MAX_SCOPES, sizeCalculation: () => 1 });

  constructor(maxPerScope: number) {
    this.#maxPerScope = maxPerScope;
    this.#maxReleased = Math.floor(maxPerScope / 2);
  }

  /** About how long until the scope may have a new claim, in milliseconds; 0 if it may add one now. */
  fullForMs(scope: string, now: number): number {
    const share = this.#scopes.get(scope);
    if (share === undefined) return 0;
    // Claims that are released at the same time can exceed their half: none of them is counted before its reply.
    const total = share.stored.total(now) + Math.min(share.released.total(now), this.#maxReleased);
    return total < this.#maxPerScope ? 0 : share.stored.nextEndMs(now);
  }

  /**
   * Whether the scope may store one more released claim. Released claims take at most half of a share, so that they
   * never keep the scope from making new claims: past it a claim is forgotten when it is released.
   */
  mayStoreReleased(scope: string, now: number): boolean {
    const share = this.#scopes.get(scope);
    return share === undefined || share.released.total(now) < this.#maxReleased;
  }

  /** @param again whether the key had a claim before, so that it may be counted as released */
  claimed(scope: string, lifetimeMs: number, again: boolean, now: number): void {
    let share = this.#scopes.get(scope);
    if (share === undefined) {
      share = { stored: new ExpiringCount(), released: new ExpiringCount() };
      this.#scopes.set(scope, share);
    }
    if (again) share.released.remove();
    share.stored.add(lifetimeMs, now);
  }

  /** @param lifetimeMs of the released claim; 0 if it was forgotten at once */
  released(scope: string, lifetimeMs: number, now: number): void {
    const share = this.#scopes.get(scope);
    share?.stored.remove();
    if (lifetimeMs > 0) share?.released.add(lifetimeMs, now);
  }
}
