import { type Clock, monotonicClock } from '../../core/clock.ts';
import { OptionError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';

/** Options of {@link createMemoryStore}. */
export interface MemoryStoreOptions {
  /**
   * Most (account, route) pairs held at a time, from 1 to 16,000,000. A full store looks at 256 accounts for a pair that is over; where it finds
   * none, the new pair is refused with `StoreFullError` and counted in `stats().refused`. Nothing active is ever forgotten (S18).
   * A key with four windows takes about 120 bytes, when it comes.
   * @default 65_536
   */
  readonly maxKeys?: number;
  /**
   * Integer milliseconds.
   * @default a monotonic clock, which a step of the wall clock does not move (S15)
   */
  readonly clock?: Clock;
}

const DEFAULT_MAX_KEYS = 65_536;
/** V8's Map holds no more than 2^24 entries. */
const MOST_KEYS = 16_000_000;

/** @throws OptionError */
export function fillOptions(options: MemoryStoreOptions): Required<MemoryStoreOptions> {
  checkOptions(options, ['maxKeys', 'clock'], 'options');
  const { maxKeys = DEFAULT_MAX_KEYS, clock = monotonicClock } = options;
  if (!Number.isSafeInteger(maxKeys) || maxKeys < 1 || maxKeys > MOST_KEYS) {
    throw new OptionError('maxKeys', maxKeys, `must be an integer from 1 to ${MOST_KEYS}`);
  }
  if (typeof clock?.now !== 'function') throw new OptionError('clock', clock, 'must be an object with now()');
  return { maxKeys, clock };
}
