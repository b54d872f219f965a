import { OptionError } from '../base/errors.ts';
import { checkFunctions, checkInteger, checkMethods, checkOneOf, checkOptions } from '../base/options.ts';
import type { ClaimId } from '../core/ports.ts';
import { createSystemTimers, type Timers } from '../core/timers.ts';
import type { IdempotencyEvent } from '../idempotency/events.ts';
import {
  type ClaimSettings,
  DEFAULT_SETTINGS,
  SETTING_NAMES,
  type SettingsInput,
  settingsOf,
  warnOfSeconds,
} from '../idempotency/settings.ts';
import type { Isolation } from '../stores/postgres/database.ts';
import { COMMON_OPTIONS, type CommonOptions, fillCommonOptions } from '../stores/postgres/options.ts';

/** The settings of idempotency that apply to a key in a transaction. */
export type TransactionSettings = Pick<SettingsInput, (typeof OWN_SETTINGS)[number]>;

/** Options of `createTransactionalIdempotency`. A call can override `waitMs`, `retentionMs`, `maxKeptBytes`, `maxRunMs`. */
export interface TransactionalIdempotencyOptions extends TransactionSettings, Omit<CommonOptions, 'onError'> {
  /**
   * How long a transaction may stay open, in milliseconds. After it, it is rolled back.
   * @default 60_000
   */
  readonly maxRunMs?: number | undefined;
  /**
   * Isolation level of the transactions.
   * @default that of the database
   */
  readonly isolation?: Isolation | undefined;
  /**
   * Most keys of one scope (I13). A scope with as many is refused for its new keys. Each process counts the table from
   * time to time, so a scope can exceed this a little.
   * @default 1_000_000
   */
  readonly maxClaimsPerScope?: number | undefined;
  /** Receives every event of a key. */
  readonly onEvent?: ((event: IdempotencyEvent & ClaimId) => void) | undefined;
  /**
   * Whether a `retentionMs` that is probably in seconds is logged (`HG_SECONDS` in `docs/misuse.md`).
   * @default true
   */
  readonly validate?: boolean | undefined;
  /**
   * Timers, for tests.
   * @default those of the platform
   */
  readonly timers?: Timers | undefined;
}

const OWN_SETTINGS = ['waitMs', 'retentionMs', 'maxKeptBytes', 'maxRunMs'] as const;
const ISOLATIONS: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable'];
const COMMON = COMMON_OPTIONS.filter((name) => name !== 'onError');
const OPTIONS = [...COMMON, ...OWN_SETTINGS, 'isolation', 'maxClaimsPerScope', 'onEvent', 'validate', 'timers'];
/** An open transaction keeps rows locked and old rows in their tables, so an hour would be too long. */
const MAX_RUN_MS = 60_000;

/**
 * The options with their defaults.
 * @throws OptionError
 */
export function fillOptions(options: TransactionalIdempotencyOptions) {
  checkOptions(options, OPTIONS, 'options');
  const { isolation, maxClaimsPerScope = 1_000_000, onEvent, timers = createSystemTimers() } = options;
  if (isolation !== undefined) checkOneOf('isolation', isolation, ISOLATIONS);
  checkInteger('maxClaimsPerScope', maxClaimsPerScope, 1);
  checkFunctions(options, ['onEvent']);
  checkMethods('timers', timers, ['now', 'after'], ', as a clock with timers does');
  const { schema, deadlineMs, clock, logger, validate, ...rest } = options;
  const common = fillCommonOptions({ schema, deadlineMs, clock, logger });
  const defaults = { ...DEFAULT_SETTINGS, maxRunMs: MAX_RUN_MS };
  const settings = settingsFor(rest, defaults);
  warnOfSeconds(settings, { validate, logger });
  return { ...common, isolation, maxClaimsPerScope, onEvent, timers, settings };
}

/**
 * Puts the settings of one call over `defaults`.
 * @throws OptionError also for a setting of claims with leases, because it would do nothing
 */
export function settingsFor(given: SettingsInput, defaults: ClaimSettings): ClaimSettings {
  for (const name of SETTING_NAMES) {
    const isOwn = (OWN_SETTINGS as readonly string[]).includes(name);
    if (!isOwn && given[name] !== undefined && given[name] !== defaults[name])
      throw new OptionError(name, given[name], 'must not be set: a key in a transaction has no lease, and no orphan');
  }
  const settings = settingsOf(given, defaults);
  const { retentionMs, maxRunMs = MAX_RUN_MS } = settings;
  // The retention begins with the claim: a key that ended before its run could be executed twice.
  if (retentionMs <= maxRunMs)
    throw new OptionError('retentionMs', retentionMs, `must be longer than maxRunMs, which is ${maxRunMs}`);
  return settings;
}
