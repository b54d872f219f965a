import type { Clock } from '../core/clock.ts';
import { OptionError } from '../core/errors.ts';

/** A clock that moves only when it is told to, forwards or back: tests of windows never sleep. */
export interface FakeClock extends Clock {
  /** Moves by `ms`, which may be negative: a wall clock that was set back. */
  advance(ms: number): void;
  /** Moves to `ms`. */
  set(ms: number): void;
}

/**
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
  if (!Number.isSafeInteger(ms)) throw new OptionError(option, ms, 'a fake clock counts whole milliseconds');
  return ms;
}
