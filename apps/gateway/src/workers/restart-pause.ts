/** So many workers are replaced at once within {@link WITHIN_MS}. */
const AT_ONCE = 5;
const WITHIN_MS = 60_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;

/**
 * How long the primary waits before it replaces a worker, so that workers that cannot live do not use up the machine.
 */
export class RestartPause {
  #ends: number[] = [];

  /**
   * A worker ended. Returns the pause in milliseconds: 0 for the first five within a minute, then twice as much for
   * each further one, up to 30 s.
   * @param now in milliseconds
   */
  next(now: number): number {
    this.#ends = [...this.#ends.filter((end) => end > now - WITHIN_MS), now];
    const further = this.#ends.length - AT_ONCE;
    return further <= 0 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (further - 1));
  }
}
