/** So many limiters in a row whose first decision was for the same account and route. */
const LIMITERS = 10;
/** Most decisions of a limiter that is made for one request: two gates of the request may use it. */
const DECISIONS_OF_ONE_REQUEST = 2;

/** What is known of a limiter. */
export interface CountedLimiter {
  /** Number of its decisions so far. */
  readonly decisions: number;
  /** How many limiters had begun to decide when this one was created. */
  readonly createdAfter: number;
}

/** The last limiters whose first decision was for one account and route. Finds limiters that are created per request. */
export class LatestLimiters {
  #subject = '';
  #limiters: readonly CountedLimiter[] = [];
  #hasFound = false;
  #begun = 0;
  /** `begun` when the last of `#limiters` began. */
  #lastBegan = 0;

  /** How many limiters began to decide. */
  get begun(): number {
    return this.#begun;
  }

  /**
   * Call it with the first decision of each limiter.
   * @returns whether each of the last ten limiters seems to be made for one request; true only once
   */
  begin(limiter: CountedLimiter, account: string, route: string): boolean {
    if (this.#hasFound) return false;
    this.#begun++;
    const subject = JSON.stringify([account, route]);
    const others = subject === this.#subject ? this.#limiters : [];
    // Limiters that were all there before the first request are those of several routes.
    if (others.length > 0 && limiter.createdAfter < this.#lastBegan) return false;
    this.#subject = subject;
    this.#lastBegan = this.#begun;
    this.#limiters = [...others, limiter].slice(-LIMITERS);
    const isShort = ({ decisions }: CountedLimiter): boolean => decisions <= DECISIONS_OF_ONE_REQUEST;
    if (this.#limiters.length < LIMITERS || !this.#limiters.every(isShort)) return false;
    this.#hasFound = true;
    this.#limiters = [];
    return true;
  }
}
