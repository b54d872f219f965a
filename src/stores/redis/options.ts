import { OptionError } from '../../base/errors.ts';
import { createLogger, type Logger } from '../../base/logger.ts';
import { checkFunctions, checkInteger, checkOptions } from '../../base/options.ts';
import type { Clock } from '../../core/clock.ts';
import { checkClock } from '../memory/options.ts';
import type { OnStoreFailure } from '../shared/failover.ts';
import { fillLimitOptions } from '../shared/limit-store-options.ts';

/** Options of {@link createRedisStore}. */
export interface RedisStoreOptions {
  /**
   * Start of every key, so that several gateways can share a server.
   * @default 'headgate'
   */
  readonly prefix?: string;
  /**
   * Longest wait for an answer, in milliseconds. After it `onStoreFailure` decides. The command may still be executed;
   * a late answer is counted in `stats().late`.
   * @default 250
   */
  readonly deadlineMs?: number;
  /**
   * The decider while Redis is slow, down, or replies with errors: `local`, `{ local: { share } }`, `admit` or `refuse`.
   * @default 'local'
   */
  readonly onStoreFailure?: OnStoreFailure;
  /**
   * For `local`: most (account, route) pairs in this process's memory. Always: most blocks that this process knows.
   * @default 65_536
   */
  readonly localMaxKeys?: number;
  /** Called with the error of every call that failed, for metrics. Its errors are logged. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * Is called when calls begin to fail, with the first error, and when Redis answers again, with undefined: once each.
   * False: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
  /**
   * A rejection is certain until its window ends. The store repeats it without asking Redis, for at most this many
   * milliseconds. If another process raises, resets or settles a limit, this process notices it up to that much later.
   * 0 disables it.
   * @default 1_000
   */
  readonly denyCacheMaxMs?: number;
  /**
   * Most rejections in this cache.
   * @default 10_000
   */
  readonly denyCacheMaxKeys?: number;
  /**
   * For tests: a clock that returns integer milliseconds, instead of the server's clock (S15). Rejections are not
   * cached then.
   * @default the server's clock
   */
  readonly clock?: Clock | undefined;
}

const OPTIONS = ['prefix', 'deadlineMs', 'onStoreFailure', 'localMaxKeys', 'onError', 'logger', 'clock'];
const CACHE_OPTIONS = ['denyCacheMaxMs', 'denyCacheMaxKeys'];

/**
 * The options with their defaults.
 * @throws OptionError
 */
export function fillOptions(options: RedisStoreOptions) {
  checkOptions(options, [...OPTIONS, ...CACHE_OPTIONS], 'options');
  return { ...options, ...fillCommonOptions(options), ...fillLimitOptions(options) };
}

/**
 * The options that all stores in Redis share, with their defaults.
 * @throws OptionError
 */
export function fillCommonOptions(options: Omit<RedisStoreOptions, 'onStoreFailure'>) {
  const { prefix = 'headgate', deadlineMs = 250, onError, logger, clock } = options;
  // Braces in the prefix would change the hash slot.
  if (typeof prefix !== 'string' || /[{}]/.test(prefix))
    throw new OptionError('prefix', prefix, 'must be a string without braces');
  checkInteger('deadlineMs', deadlineMs, 1);
  checkFunctions(options, ['onError']);
  if (clock !== undefined) checkClock(clock);
  return { prefix, deadlineMs, onError, clock, log: createLogger(logger) };
}
