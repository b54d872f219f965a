import { type Clock, monotonicClock } from '../core/clock.ts';
import { SharedTimers } from './shared-timers.ts';

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

/**
 * Whether a timer may serve others than the request that set it. On Workers, with or without their compatibility with Node, it ends with that request;
 * of what is no process nothing is known.
 */
function outliveRequests(): boolean {
  const { process, navigator } = globalThis as { process?: NodeJS.Process; navigator?: { userAgent?: string } };
  return process?.versions?.node !== undefined && navigator?.userAgent !== 'Cloudflare-Workers';
}

/** The platform's own. */
export function createSystemTimers(): Timers {
  const { now } = monotonicClock;
  const shared = outliveRequests()
    ? new SharedTimers(monotonicClock, (call, ms) => void setTimeout(call, ms).unref?.())
    : undefined;
  return {
    now,
    after(ms, call, background) {
      const shortMs = Math.min(ms, LONGEST_MS);
      if (background && shared !== undefined) return shared.after(shortMs, call);
      const timer = setTimeout(call, shortMs);
      return () => clearTimeout(timer);
    },
  };
}
