import { type Clock, monotonicClock } from '../core/clock.ts';

/** Time as a parameter, with a way to be called back. */
export interface Timers extends Clock {
  /**
   * Calls back once, `ms` from now or later; gives what prevents it.
   * @param background whether a process with nothing else to do may end before
   */
  after(ms: number, call: () => void, background: boolean): () => void;
}

/** The longest that a timer can count; a longer one would fire at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** The platform's own. */
export const systemTimers: Timers = {
  now: monotonicClock.now,
  after(ms, call, background) {
    const timer = setTimeout(call, Math.min(ms, LONGEST_MS));
    if (background) timer.unref?.();
    return () => clearTimeout(timer);
  },
};
