import type { Clock } from 'headgate/limits';

/** Clocks drift apart, so an older report is not used. */
const MAX_AGE_MS = 60_000;

/** The server's clock: its last report, and the time that passed here since then. */
export class ServerTime {
  readonly #clock: Clock | undefined;
  #last: { readonly now: number; readonly at: number } | undefined;

  /** @param clock the clock that calls pass; undefined: the server's clock */
  constructor(clock: Clock | undefined) {
    this.#clock = clock;
  }

  /** Undefined if the server did not report it in the last minute. Never later than the server's clock. */
  now(): number | undefined {
    if (this.#clock !== undefined) return this.#clock.now();
    if (this.#last === undefined) return undefined;
    const age = performance.now() - this.#last.at;
    return age > MAX_AGE_MS ? undefined : Math.floor(this.#last.now + age);
  }

  /** Called with a reply, which is later than the server's report: so `now` is early, and so are deadlines. */
  reported(now: number): void {
    this.#last = { now, at: performance.now() };
  }
}
