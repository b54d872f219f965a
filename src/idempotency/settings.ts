import type { OnOrphan } from '../core/claim.ts';
import { OptionError } from '../core/errors.ts';

/** How a claim is held and kept. Each can be given for one call as well. */
export interface ClaimSettings {
  /**
   * How long a claim outlives an owner that has died, in milliseconds; a living owner renews it at a third of that.
   * @default 30_000
   */
  readonly leaseMs: number;
  /**
   * How long a living owner renews its claim, in milliseconds, at most 24 hours. One that has come to no end by then is taken for dead: its lease
   * runs out, and its retries find an orphan (I9). An outcome that comes later still counts, where no other came first.
   * @default 3_600_000
   */
  readonly maxRunMs: number;
  /**
   * How long a duplicate waits for the original's outcome, in milliseconds (I5); 0 refuses it at once.
   * @default 10_000
   */
  readonly waitMs: number;
  /**
   * How long an outcome is kept, in milliseconds, at most 24 hours (I8).
   * @default 86_400_000
   */
  readonly retentionMs: number;
  /**
   * Largest value that is kept, in bytes of UTF-8; of a larger one only its status is, and a retry is refused, never run again (I7).
   * @default 1_048_576
   */
  readonly maxKeptBytes: number;
  /**
   * What a retry does about a claim whose owner died after it had asked for dispatch (I9): `reject` it (at most once), `reexecute` (at
   * least once), or `reconcile`, by a callback that knows.
   * @default 'reject'
   */
  readonly onOrphan: OnOrphan;
  /**
   * What happens while the store is away (I12): `refuse` executes nothing, `bypass` executes without protection.
   * @default 'refuse'
   */
  readonly onStoreFailure: 'refuse' | 'bypass';
}

/** Some of {@link ClaimSettings}. */
export type SettingsInput = { readonly [Name in keyof ClaimSettings]?: ClaimSettings[Name] | undefined };

const DAY_MS = 86_400_000;

export const DEFAULT_SETTINGS: ClaimSettings = /* @__PURE__ */ Object.freeze({
  leaseMs: 30_000,
  maxRunMs: 3_600_000,
  waitMs: 10_000,
  retentionMs: DAY_MS,
  maxKeptBytes: 1_048_576,
  onOrphan: 'reject',
  onStoreFailure: 'refuse',
});

export const SETTING_NAMES = /* @__PURE__ */ Object.keys(DEFAULT_SETTINGS) as (keyof ClaimSettings)[];

const RANGES = /* @__PURE__ */ Object.freeze({
  leaseMs: [1, DAY_MS],
  maxRunMs: [1, DAY_MS],
  waitMs: [0, DAY_MS],
  retentionMs: [1, DAY_MS],
  maxKeptBytes: [0, Number.MAX_SAFE_INTEGER],
} as const);

const CHOICES = {
  onOrphan: ['reject', 'reexecute', 'reconcile'],
  onStoreFailure: ['refuse', 'bypass'],
} as const;

/**
 * `given` over `defaults`; what is undefined is as if it were absent.
 * @throws OptionError
 */
export function settingsOf(given: SettingsInput, defaults: ClaimSettings): ClaimSettings {
  if (!SETTING_NAMES.some((name) => given[name] !== undefined)) return defaults;
  for (const [name, [min, max]] of Object.entries(RANGES)) {
    const value: unknown = Reflect.get(given, name);
    if (value !== undefined && !(Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max))
      throw new OptionError(name, value, `must be an integer from ${min} to ${max}`);
  }
  for (const [name, choices] of Object.entries(CHOICES)) {
    const value: unknown = Reflect.get(given, name);
    if (value !== undefined && !choices.some((choice) => choice === value))
      throw new OptionError(name, value, `must be one of ${choices.join(', ')}`);
  }
  const present = SETTING_NAMES.filter((name) => given[name] !== undefined);
  return { ...defaults, ...Object.fromEntries(present.map((name) => [name, given[name]])) };
}
