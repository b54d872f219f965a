import { OptionError } from '../../base/errors.ts';
import { createLogger, type Logger } from '../../base/logger.ts';
import { checkFunctions, checkInteger, checkOptions, isPlainObject } from '../../base/options.ts';
import type { Clock } from '../../core/clock.ts';
import { checkClock } from '../memory/options.ts';
import type { OnStoreFailure } from '../shared/failover.ts';

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
const POLICIES: readonly unknown[] = ['local', 'admit', 'refuse'];

/**
 * The options with their defaults.
 * @throws OptionError
 */
export function fillOptions(options: RedisStoreOptions) {
  checkOptions(options, [...OPTIONS, ...CACHE_OPTIONS], 'options');
  const { onStoreFailure = 'local', denyCacheMaxMs = 1_000, denyCacheMaxKeys = 10_000 } = options;
  checkInteger('denyCacheMaxMs', denyCacheMaxMs, 0);
  checkInteger('denyCacheMaxKeys', denyCacheMaxKeys, 1);
  checkPolicy(onStoreFailure);
  return { ...options, ...fillCommonOptions(options), onStoreFailure, denyCacheMaxMs, denyCacheMaxKeys };
}

function checkPolicy(given: OnStoreFailure): void {
  if (POLICIES.includes(given)) return;
  if (!isPlainObject(given))
    throw new OptionError(
      'onStoreFailure',
      given,
      `must be one of ${POLICIES.join(', ')} or { local: { share: 0.1 } }`,
    );
  checkOptions(given, ['local'], 'onStoreFailure');
  checkOptions(given.local, ['share'], 'onStoreFailure.local');
  const { share } = given.local;
  if (!(typeof share === 'number' && share > 0 && share <= 1))
    throw new OptionError('onStoreFailure.local.share', share, 'must be a number above 0 and up to 1');
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
