import type { Logger } from '../../base/logger.ts';
import { checkInteger, checkOptions } from '../../base/options.ts';
import type { Clock } from '../../core/clock.ts';
import type { RedisClient } from './client.ts';
import { fillCommonOptions } from './options.ts';

/** Options of `createRedisClaimStore`. */
export interface RedisClaimStoreOptions {
  /**
   * Start of every key, so that several gateways can share a server. A limiter's store can use the same prefix.
   * @default 'headgate'
   */
  readonly prefix?: string;
  /**
   * Longest wait for an answer, in milliseconds. After it the call throws `StoreTimeoutError`. The command may still be
   * executed, which is harmless: see docs/claims.md.
   * @default 250
   */
  readonly deadlineMs?: number;
  /**
   * Most claims of one scope that this process began and that have not expired (I13). A scope with as many gets
   * `ScopeFullError` for its new keys, counted in `stats().refusedInScope`; its known keys and other scopes are not
   * affected. The count is approximate, per process, and 0 after a restart. Released claims take at most half of it:
   * past that, a claim is forgotten when it is released.
   * @default 1_000_000 (about 1 GB in Redis)
   */
  readonly maxClaimsPerScope?: number | undefined;
  /** How results of more than 8 KiB travel. They never share a call with other commands. */
  readonly largeValues?: LargeValueOptions | undefined;
  /** Called with the error of every call that failed, for metrics. Its errors are logged. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * Is called when calls begin to fail, with the first error, and when Redis answers again, with undefined: once each,
   * and separately for the connection for large results. False: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
  /**
   * For tests: a clock that returns integer milliseconds, instead of the server's clock.
   * @default the server's clock
   */
  readonly clock?: Clock | undefined;
}

/** How large results travel. */
export interface LargeValueOptions {
  /**
   * A second client of the same server or cluster, so that no other command waits behind a large result.
   * @default the store's client
   */
  readonly client?: RedisClient | undefined;
  /**
   * Most bytes of large results per scope that wait or are under way in this process. Scopes take turns. Past it, or if
   * the turn does not come within 2 seconds, an outcome is stored without its value (I7), and a read throws
   * `ResultUnavailableError`. A single result always fits.
   * @default 8_388_608
   */
  readonly maxBytesPerScope?: number | undefined;
}

const OPTIONS = ['prefix', 'deadlineMs', 'maxClaimsPerScope', 'largeValues', 'onError', 'logger', 'clock'];

/** Options with their defaults. */
export type FilledClaimOptions = ReturnType<typeof fillClaimOptions>;

/** @throws OptionError */
export function fillClaimOptions(client: RedisClient, options: RedisClaimStoreOptions) {
  checkOptions(options, OPTIONS, 'options');
  const { maxClaimsPerScope = 1_000_000, largeValues = {} } = options;
  checkOptions(largeValues, ['client', 'maxBytesPerScope'], 'largeValues');
  const { client: largeClient = client, maxBytesPerScope = 8_388_608 } = largeValues;
  checkInteger('maxClaimsPerScope', maxClaimsPerScope, 1);
  checkInteger('largeValues.maxBytesPerScope', maxBytesPerScope, 0);
  const common = fillCommonOptions(options);
  return { ...common, maxClaimsPerScope, largeClient, maxLargeBytesPerScope: maxBytesPerScope };
}
