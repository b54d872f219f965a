/** So many limiters that followed another one, which began with the same account and route. */
const FOLLOWERS = 9;
/** Most accounts and routes that are remembered. */
const MAX_SUBJECTS = 1_000;
/** Most decisions of a limiter that is made for one request: two gates of the request may use it. */
const DECISIONS_OF_ONE_REQUEST = 2;

/** What is known of a limiter. */
export interface CountedLimiter {
  /** Number of its decisions so far. */
  readonly decisions: number;
  /** How many limiters had begun to decide when this one was created. */
  readonly createdAfter: number;
}

/** The last limiter per account and route of a first decision. Finds limiters that are created per request. */
export class LatestLimiters {
  /** `began` is the value of `#begun` then. */
  readonly #latest = new Map<string, { readonly limiter: CountedLimiter; readonly began: number }>();
  /** How many limiters followed another one with the same first account and route, which decided once or twice. */
  #followers = 0;
  #begun = 0;

  /** How many limiters began to decide. */
  get begun(): number {
    return this.#begun;
  }

  /**
   * Call it with the first decision of each limiter.
   * @returns whether limiters seem to be made for one request each; true only once
   */
  begin(limiter: CountedLimiter, account: string, route: string): boolean {
    if (this.#followers === FOLLOWERS) return false;
    this.#begun++;
    const subject = JSON.stringify([account, route]);
    const before = this.#latest.get(subject);
    // Limiters that were all there before the first request are those of several routes.
    if (before !== undefined && limiter.createdAfter < before.began) return false;
    this.#latest.delete(subject);
    this.#latest.set(subject, { limiter, began: this.#begun });
    if (this.#latest.size > MAX_SUBJECTS) this.#latest.delete(this.#latest.keys().next().value as string);
    if (before === undefined) return false;
    this.#followers = before.limiter.decisions > DECISIONS_OF_ONE_REQUEST ? 0 : this.#followers + 1;
    if (this.#followers < FOLLOWERS) return false;
    this.#latest.clear();
    return true;
  }
}
