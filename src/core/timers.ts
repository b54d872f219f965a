import { type Clock, monotonicClock } from './clock.ts';
import { SharedTimers } from './shared-timers.ts';

/** A clock with timers. Tests pass their own. */
export interface Timers extends Clock {
  /**
   * Calls `call` once, `ms` milliseconds from now or later. Returns a function that cancels the call.
   * @param background if true, the process may exit before the call when nothing else is left to do
   */
  after(ms: number, call: () => void, background: boolean): () => void;
}

/** The longest delay that `setTimeout` accepts; it fires at once for a longer one. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/**
 * Whether a timer may serve other requests than the one that set it. On Cloudflare Workers, with or without Node.js
 * compatibility, a timer ends with its request. Without `process`, the platform is unknown, so timers are not shared.
 */
function timersOutliveRequests(): boolean {
  const { process, navigator } = globalThis as { process?: NodeJS.Process; navigator?: { userAgent?: string } };
  return process?.versions?.node !== undefined && navigator?.userAgent !== 'Cloudflare-Workers';
}

/** The timers of the platform. */
export function createSystemTimers(): Timers {
  const { now } = monotonicClock;
  const shared = timersOutliveRequests()
    ? new SharedTimers(monotonicClock, (call, ms) => void setTimeout(call, ms).unref?.())
    : undefined;
  return {
    now,
    after(ms, call, background) {
      const delayMs = Math.min(ms, MAX_DELAY_MS);
      if (background && shared !== undefined) return shared.after(delayMs, call);
      const timer = setTimeout(call, delayMs);
      return () => clearTimeout(timer);
    },
  };
}
