import type { Clock } from '../../core/clock.ts';
import { OptionError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';
import type { OnStoreFailure } from '../shared/failover.ts';

/** Options of {@link createRedisStore}. */
export interface RedisStoreOptions {
  /**
   * In front of every key, so that several gateways can share a server without meeting.
   * @default 'headgate'
   */
  readonly prefix?: string;
  /**
   * Longest wait for one answer, in milliseconds. Past it `onStoreFailure` decides; the command may still land, which `stats().late` counts.
   * @default 250
   */
  readonly deadlineMs?: number;
  /**
   * Who decides while Redis is slow, gone, or refuses.
   * @default 'local'
   */
  readonly onStoreFailure?: OnStoreFailure;
  /**
   * With `local`: most (account, route) pairs that this process's memory holds meanwhile.
   * @default 65_536
   */
  readonly localMaxKeys?: number;
  /** Hears of every call that failed, for a log. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * A rejection is certain until its window ends, and answered here without asking again, for at most this many milliseconds: the price is
   * that a limit raised, reset or refunded by another process is noticed that much later. 0 switches it off.
   * @default 1_000
   */
  readonly denyCacheMaxMs?: number;
  /**
   * Most rejections remembered at a time.
   * @default 10_000
   */
  readonly denyCacheMaxKeys?: number;
  /**
   * For tests: time in integer milliseconds instead of the server's own (S15). Rejections are not remembered then.
   * @default the server's clock
   */
  readonly clock?: Clock | undefined;
}

/** Options with every default filled in. */
export interface FilledOptions extends RedisStoreOptions {
  readonly prefix: string;
  readonly deadlineMs: number;
  readonly onStoreFailure: OnStoreFailure;
  readonly denyCacheMaxMs: number;
  readonly denyCacheMaxKeys: number;
}

const OPTIONS = [
  'prefix',
  'deadlineMs',
  'onStoreFailure',
  'localMaxKeys',
  'onError',
  'denyCacheMaxMs',
  'denyCacheMaxKeys',
  'clock',
];
const POLICIES: readonly OnStoreFailure[] = ['local', 'admit', 'refuse'];

/** @throws OptionError */
export function fillOptions(options: RedisStoreOptions): FilledOptions {
  checkOptions(options, OPTIONS, 'options');
  const { prefix = 'headgate', deadlineMs = 250, onStoreFailure = 'local' } = options;
  const { denyCacheMaxMs = 1_000, denyCacheMaxKeys = 10_000 } = options;
  checkPrefix(prefix);
  checkInteger('deadlineMs', deadlineMs, 1);
  checkInteger('denyCacheMaxMs', denyCacheMaxMs, 0);
  checkInteger('denyCacheMaxKeys', denyCacheMaxKeys, 1);
  if (!POLICIES.includes(onStoreFailure)) {
    throw new OptionError('onStoreFailure', onStoreFailure, `must be one of ${POLICIES.join(', ')}`);
  }
  return { ...options, prefix, deadlineMs, onStoreFailure, denyCacheMaxMs, denyCacheMaxKeys };
}

/** Braces in it would decide the hash slot. */
export function checkPrefix(prefix: unknown): void {
  if (typeof prefix === 'string' && !/[{}]/.test(prefix)) return;
  throw new OptionError('prefix', prefix, 'must be a string without braces');
}

export function checkInteger(option: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw new OptionError(option, value, `must be an integer from ${least} on`);
}
