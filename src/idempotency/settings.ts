import { OptionError } from '../base/errors.ts';
import { checkOneOf } from '../base/options.ts';
import type { OnOrphan } from '../core/claim.ts';
import { createMisuseLog, isSeconds, type MisuseOptions } from '../core/misuse.ts';

/** How claims are leased and how outcomes are stored. Each setting can also be given for one call. */
export interface ClaimSettings {
  /**
   * How long a claim lasts after its owner died, in milliseconds, at most 24 hours. A living owner renews its claim
   * at a third of this time.
   * @default 30_000
   */
  readonly leaseMs: number;
  /**
   * How long an owner renews its claim, in milliseconds, at most 24 hours. An owner without an outcome by then is
   * taken for dead: its lease expires, and retries find an orphan (I9). A later outcome of this owner is still stored
   * if no other outcome was stored first.
   * @default 3_600_000
   */
  readonly maxRunMs: number;
  /**
   * How long a duplicate waits for the original's outcome, in milliseconds, at most 24 hours (I5). With 0 it is refused
   * at once.
   * @default 10_000
   */
  readonly waitMs: number;
  /**
   * How long an outcome is stored, in milliseconds, at most 365 days (I8). An unknown outcome stays until it is resolved
   * (I9).
   * @default 86_400_000
   */
  readonly retentionMs: number;
  /**
   * How long a released key still refuses another request, in milliseconds, at most 24 hours (I6). Never longer than
   * `retentionMs`. Nothing happened under a released key, so minutes are enough, and its record takes little room.
   * @default 600_000
   */
  readonly releasedRetentionMs: number;
  /**
   * Largest value that is stored, in bytes of UTF-8. If a value is larger, only its status is stored. A retry is then
   * refused, and never runs again (I7).
   * @default 1_048_576
   */
  readonly maxKeptBytes: number;
  /**
   * What a retry does if the claim's owner died after dispatch (I9): `reject` refuses the retry (at most once),
   * `reexecute` runs it (at least once), `reconcile` asks a callback.
   * @default 'reject'
   */
  readonly onOrphan: OnOrphan;
  /**
   * What happens while the store is down (I12): `refuse` executes nothing, `bypass` executes without protection.
   * @default 'refuse'
   */
  readonly onStoreFailure: 'refuse' | 'bypass';
}

/** Some of {@link ClaimSettings}. */
export type SettingsInput = { readonly [Name in keyof ClaimSettings]?: ClaimSettings[Name] | undefined };

/** What one setting accepts, with its default: an integer from `min` to `max`, or one of `choices`. */
export type SettingRule<Value> = { readonly default: Value } & ([Value] extends [number]
  ? { readonly min: number; readonly max: number }
  : { readonly choices: readonly Value[] });

const DAY_MS = 86_400_000;

const YEAR_MS = 365 * DAY_MS;

/** `Number.MAX_SAFE_INTEGER` by its value: bundlers do not drop a table that reads a property of a global. */
const MAX_BYTES = 2 ** 53 - 1;

/** The one table of settings. {@link settingsOf} checks by it, and the gateway makes its config schema from it. */
export const SETTINGS: { readonly [Name in keyof ClaimSettings]: SettingRule<ClaimSettings[Name]> } = {
  leaseMs: { min: 1, max: DAY_MS, default: 30_000 },
  maxRunMs: { min: 1, max: DAY_MS, default: 3_600_000 },
  waitMs: { min: 0, max: DAY_MS, default: 10_000 },
  retentionMs: { min: 1, max: YEAR_MS, default: DAY_MS },
  releasedRetentionMs: { min: 1, max: DAY_MS, default: 600_000 },
  maxKeptBytes: { min: 0, max: MAX_BYTES, default: 1_048_576 },
  onOrphan: { choices: ['reject', 'reexecute', 'reconcile'], default: 'reject' },
  onStoreFailure: { choices: ['refuse', 'bypass'], default: 'refuse' },
};

export const SETTING_NAMES = /* @__PURE__ */ Object.keys(SETTINGS) as (keyof ClaimSettings)[];

export const DEFAULT_SETTINGS = /* @__PURE__ */ Object.freeze(
  /* @__PURE__ */ Object.fromEntries(/* @__PURE__ */ SETTING_NAMES.map((name) => [name, SETTINGS[name].default])),
) as unknown as ClaimSettings;

/**
 * Puts `given` over `defaults`. An undefined value counts as absent.
 * @throws OptionError
 */
export function settingsOf(given: SettingsInput, defaults: ClaimSettings): ClaimSettings {
  let settings: Record<string, unknown> | undefined;
  for (const name of SETTING_NAMES) {
    const value = given[name];
    // Most calls give nothing, or the defaults again, and need no object of their own.
    if (value === undefined || value === defaults[name]) continue;
    checkSetting(name, value);
    settings ??= { ...defaults };
    settings[name] = value;
  }
  return (settings as ClaimSettings | undefined) ?? defaults;
}

/**
 * Warns of a retention that is probably in seconds: a key that is forgotten too early is executed twice, in silence.
 * @throws OptionError
 */
export function warnOfSeconds({ retentionMs }: ClaimSettings, options: MisuseOptions): void {
  const misuse = createMisuseLog(options);
  if (isSeconds(retentionMs)) misuse?.warn('HG_SECONDS', `retentionMs is ${retentionMs}: are seconds meant?`);
}

function checkSetting(name: keyof ClaimSettings, value: unknown): void {
  const rule: SettingRule<number> | SettingRule<string> = SETTINGS[name];
  if ('choices' in rule) {
    checkOneOf(name, value, rule.choices);
  } else if (!Number.isSafeInteger(value) || Number(value) < rule.min || Number(value) > rule.max)
    throw new OptionError(name, value, `must be an integer from ${rule.min} to ${rule.max}`);
}
