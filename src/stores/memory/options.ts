import { ClockError, OptionError } from '../../base/errors.ts';
import { checkInteger, checkOptions } from '../../base/options.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';

/** Options of {@link createMemoryStore}. */
export interface MemoryStoreOptions {
  /**
   * Most (account, route) pairs in memory, from 1 to 16,000,000. A full store checks 256 accounts for a pair whose
   * windows are over. If it finds none, it refuses the new pair with `StoreFullError` and counts it in
   * `stats().refused`. An active pair is never evicted (S18). A pair with four windows takes about 120 bytes, allocated
   * when it is first used.
   * @default 65_536
   */
  readonly maxKeys?: number;
  /**
   * Returns integer milliseconds.
   * @default a monotonic clock, which a step of the wall clock does not change (S15)
   */
  readonly clock?: Clock;
}

export const DEFAULT_MAX_KEYS = 65_536;
/** A V8 Map holds at most 2^24 entries. */
const LARGEST_MAX_KEYS = 16_000_000;

/** @throws OptionError */
export function fillOptions(options: MemoryStoreOptions): Required<MemoryStoreOptions> {
  checkOptions(options, ['maxKeys', 'clock'], 'options');
  const { maxKeys = DEFAULT_MAX_KEYS, clock = monotonicClock } = options;
  checkMaxKeys(maxKeys);
  checkClock(clock);
  return { maxKeys, clock };
}

/** @throws OptionError */
export function checkMaxKeys(maxKeys: number): void {
  checkInteger('maxKeys', maxKeys, 1, LARGEST_MAX_KEYS);
}

/** @throws OptionError */
export function checkClock(clock: Clock): void {
  if (typeof clock?.now !== 'function') throw new OptionError('clock', clock, 'must be an object with a method now()');
}

/**
 * Reads the clock.
 * @throws ClockError
 */
export function readClock(clock: Clock): number {
  const now = clock.now();
  if (!Number.isSafeInteger(now)) throw new ClockError(now);
  return now;
}
