import { checkInteger, checkOptions } from '../../base/options.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { checkClock, checkMaxKeys } from './options.ts';

/** Options of {@link createMemoryClaimStore}. */
export interface MemoryClaimStoreOptions {
  /**
   * Most idempotency keys in the store, from 1 to 16,000,000. They do not count for a limiter's store. A full store
   * checks 256 keys for one that expired or that is released. If it finds none, it refuses a new key with
   * `StoreFullError` and counts it in `stats().refused`. A claim in progress is never evicted (I13). Neither is a
   * finished one, because its retry would be executed again.
   * @default 100_000
   */
  readonly maxKeys?: number;
  /**
   * Most idempotency keys of one scope, at most `maxKeys`. A full scope forgets its oldest released keys first. If it
   * has none, it refuses its own new keys with `ScopeFullError` and counts them in `stats().refusedInScope`; other
   * scopes are not affected (I13). A service with only one scope can set it to `maxKeys`.
   * @default half of `maxKeys`
   */
  readonly maxClaimsPerScope?: number;
  /**
   * Idempotency keys that are guaranteed to each scope, however many the other scopes use. A scope at this number gets
   * more only while the store is less than half full. So the guarantee is kept for `maxKeys / 2 / minClaimsPerScope`
   * scopes.
   * @default no guarantee
   */
  readonly minClaimsPerScope?: number | undefined;
  /**
   * Most bytes of stored result values, counted as two per character. Past it, the values of the oldest results are
   * dropped and counted in `stats().dropped`: the scope's own values if it uses more than an equal share. Their claims
   * stay: a retry gets the reply that the original completed
   * (I7).
   * @default 67_108_864 (64 MiB)
   */
  readonly maxBytes?: number;
  /**
   * Most bytes of the stored result values of one scope, at most `maxBytes`. Past it, the values of the scope's own
   * oldest results are dropped.
   * @default half of `maxBytes`
   */
  readonly maxBytesPerScope?: number;
  /**
   * Returns integer milliseconds.
   * @default a monotonic clock, which a step of the wall clock does not change (S15)
   */
  readonly clock?: Clock;
}

/** How the scopes share a memory claim store: see {@link MemoryClaimStoreOptions}. */
export type MemoryClaimShares = Pick<MemoryClaimStoreOptions, 'maxClaimsPerScope' | 'minClaimsPerScope'>;

/** The options with their defaults. */
export type FilledMemoryClaimOptions = Required<MemoryClaimStoreOptions>;

const DEFAULT_MAX_KEYS = 100_000;
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;

/**
 * Checks the options and fills in the defaults.
 * @throws OptionError
 */
export function fillClaimOptions(options: MemoryClaimStoreOptions): FilledMemoryClaimOptions {
  const names = ['maxKeys', 'maxClaimsPerScope', 'minClaimsPerScope', 'maxBytes', 'maxBytesPerScope', 'clock'];
  checkOptions(options, names, 'options');
  const { maxKeys = DEFAULT_MAX_KEYS, maxBytes = DEFAULT_MAX_BYTES, clock = monotonicClock } = options;
  checkMaxKeys(maxKeys);
  const shares = checkedShares(options, maxKeys);
  checkInteger('maxBytes', maxBytes, 0, Number.MAX_SAFE_INTEGER);
  const { maxBytesPerScope = Math.ceil(maxBytes / 2) } = options;
  checkInteger('maxBytesPerScope', maxBytesPerScope, 0, maxBytes);
  checkClock(clock);
  return { maxKeys, ...shares, maxBytes, maxBytesPerScope, clock };
}

/**
 * @returns the shares with their defaults
 * @throws OptionError
 */
export function checkedShares(
  { maxClaimsPerScope, minClaimsPerScope }: MemoryClaimShares,
  maxKeys: number,
): Required<MemoryClaimShares> {
  const most = maxClaimsPerScope ?? Math.ceil(maxKeys / 2);
  checkInteger('maxClaimsPerScope', most, 1, maxKeys);
  if (minClaimsPerScope !== undefined) checkInteger('minClaimsPerScope', minClaimsPerScope, 1, most);
  return { maxClaimsPerScope: most, minClaimsPerScope };
}
