import type { Database } from './database.ts';

/** How often a full scope is counted again, at most. */
const FULL_MS = 1_000;
/** A count may take long, and goes on in the server after its deadline. So the next one waits so many times as long. */
const PAUSE = 10;
/** A scope is counted again after this part of its share was added here. */
const PART = 64;
/** Scopes that a process knows. */
const MAX_SCOPES = 10_000;

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
export class ScopeShares {
  readonly max: number;
  readonly #database: Database;
  readonly #shares = new Map<string, Share>();

  constructor(database: Database, max: number) {
    this.#database = database;
    this.max = max;
  }

  isFull(scopeId: Buffer): boolean {
    const share = this.#shares.get(scopeId.toString('latin1'));
    if (share === undefined || share.claims < this.max) return false;
    if (performance.now() > share.recountAt) this.#count(scopeId, share);
    return true;
  }

  /** About how long until a claim of a full scope expires. */
  retryAfterMs(scopeId: Buffer): number {
    return this.#shares.get(scopeId.toString('latin1'))?.retryAfterMs ?? FULL_MS;
  }

  /** Notes a new claim. */
  added(scopeId: Buffer): void {
    const name = scopeId.toString('latin1');
    const known = this.#shares.get(name);
    const share = known ?? { claims: 0, uncounted: 0, recountAt: 0, retryAfterMs: FULL_MS, isCounting: false };
    // The scopes that were used last are at the end.
    this.#shares.delete(name);
    this.#shares.set(name, share);
    const [oldest] = this.#shares.keys();
    if (this.#shares.size > MAX_SCOPES && oldest !== undefined) this.#shares.delete(oldest);
    share.claims++;
    share.uncounted++;
    if (known === undefined || share.uncounted * PART >= this.max) this.#count(scopeId, share);
  }

  #count(scopeId: Buffer, share: Share): void {
    if (share.isCounting) return;
    share.isCounting = true;
    const [before, begunAt] = [share.uncounted, performance.now()];
    const counted = this.#database.query<{ claims: string; first: string | null; now: string }>(
      `select count(*) as claims, min(expires_at) as first, min(now) as now from (
         select expires_at, now
         from headgate.claims, (select coalesce($3, headgate.clock()) as now) as clock
         where scope_id = $1 and (expires_at > now or (state = 'in_progress' and dispatched)) order by expires_at limit $2
       ) as active`,
      [scopeId, this.max, this.#database.now()],
      10 * this.#database.deadlineMs,
    );
    counted
      .then(([row]) => {
        share.uncounted -= before;
        share.claims = Number(row?.claims) + share.uncounted;
        if (row?.first) share.retryAfterMs = Math.max(1, Number(row.first) - Number(row.now));
      })
      // The last count applies until the next one.
      .catch(() => undefined)
      .finally(() => {
        const now = performance.now();
        share.recountAt = now + Math.max(FULL_MS, PAUSE * (now - begunAt));
        share.isCounting = false;
      });
  }
}
