import { createLogger, type Logger } from '../../base/logger.ts';
import { checkFunctions, checkInteger, checkOneOf, checkOptions } from '../../base/options.ts';
import type { Clock } from '../../core/clock.ts';
import { checkClock } from '../memory/options.ts';
import type { OnStoreFailure } from '../shared/failover.ts';
import { fillLimitOptions } from '../shared/limit-store-options.ts';
import { quotedSchema, type SchemaOptions } from './schema.ts';

/** Options of all stores in PostgreSQL. */
export interface CommonOptions extends SchemaOptions {
  /**
   * Longest wait for an answer, in milliseconds, the wait for a connection of the pool included. The statement can
   * still be executed after it, if it was sent.
   * @default 500
   */
  readonly deadlineMs?: number | undefined;
  /** Called with the error of every call that failed, for metrics. Its errors are logged. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * Is called when calls begin to fail, with the first error, and when PostgreSQL answers again, with undefined: once
   * each. False: nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
  /**
   * For tests: a clock that returns integer milliseconds, instead of the server's clock (S15).
   * @default the server's clock
   */
  readonly clock?: Clock | undefined;
}

/** Options of {@link createPostgresStore}. */
export interface PostgresStoreOptions extends CommonOptions {
  /**
   * Whether a decision waits until its charge is on the disk, and on synchronous replicas. Without it, a crash of
   * PostgreSQL can forget the charges of the last second, as a crash of Redis does. Blocks and resets always wait.
   * @default false
   */
  readonly durable?: boolean | undefined;
  /**
   * The decider while PostgreSQL is slow, down, or replies with errors: `local`, `{ local: { share } }`, `admit` or
   * `refuse`. A wrong set-up is a `PostgresSetupError`, whatever this says.
   * @default 'local'
   */
  readonly onStoreFailure?: OnStoreFailure;
  /**
   * For `local`: most (account, route) pairs in this process's memory. Always: most blocks that this process knows.
   * @default 65_536
   */
  readonly localMaxKeys?: number;
  /**
   * A rejection is certain until its window ends. The store repeats it without asking PostgreSQL, for at most this many
   * milliseconds. If another process raises, resets or settles a limit, this process notices it up to that much later.
   * 0 disables it, and so does `clock`.
   * @default 1_000
   */
  readonly denyCacheMaxMs?: number;
  /**
   * Most rejections in this cache.
   * @default 10_000
   */
  readonly denyCacheMaxKeys?: number;
}

/** The names of {@link CommonOptions}. */
export const COMMON_OPTIONS = ['schema', 'deadlineMs', 'onError', 'logger', 'clock'];
const LIMIT_OPTIONS = ['durable', 'onStoreFailure', 'localMaxKeys', 'denyCacheMaxMs', 'denyCacheMaxKeys'];

/**
 * The options with their defaults.
 * @throws OptionError
 */
export function fillOptions(options: PostgresStoreOptions) {
  checkOptions(options, [...COMMON_OPTIONS, ...LIMIT_OPTIONS], 'options');
  const { localMaxKeys, durable = false } = options;
  checkOneOf('durable', durable, [true, false]);
  return { localMaxKeys, durable, ...fillCommonOptions(options), ...fillLimitOptions(options) };
}

/**
 * The options that all stores in PostgreSQL share, with their defaults.
 * @throws OptionError
 */
export function fillCommonOptions(options: CommonOptions) {
  const { schema, deadlineMs = 500, onError, logger, clock } = options;
  quotedSchema(schema);
  // The longest timer.
  checkInteger('deadlineMs', deadlineMs, 1, 2 ** 31 - 1);
  checkFunctions(options, ['onError']);
  if (clock !== undefined) checkClock(clock);
  return { schema, deadlineMs, onError, clock, log: createLogger(logger) };
}
