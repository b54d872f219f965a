import { OptionError } from '../base/errors.ts';
import type { Clock } from '../core/clock.ts';

/** A clock that moves only when a test moves it, forwards or back. Tests of windows never have to wait. */
export interface FakeClock extends Clock {
  /** Moves by `ms` milliseconds. A negative `ms` is a wall clock that is set back. */
  advance(ms: number): void;
  /** Moves to `ms`, in milliseconds. */
  set(ms: number): void;
}

/**
 * Creates a clock that starts at `start`, in milliseconds.
 * @throws OptionError if a time is not a safe integer
 * @example
 * const clock = createFakeClock();
 * const store = createMemoryStore({ clock });
 * clock.advance(60_000);
 */
export function createFakeClock(start = 0): FakeClock {
  let now = checked('start', start);
  return {
    now: () => now,
    advance(ms) {
      now = checked('now', now + checked('ms', ms));
    },
    set(ms) {
      now = checked('ms', ms);
    },
  };
}

function checked(option: string, ms: number): number {
  if (!Number.isSafeInteger(ms)) throw new OptionError(option, ms, 'must be a whole number of milliseconds');
  return ms;
}
