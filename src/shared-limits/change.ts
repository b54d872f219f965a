import { OptionError } from '../base/errors.ts';
import { checkMethods, checkOptions } from '../base/options.ts';
import { type AdjustTarget, placeOfTarget, targetKey } from '../core/adjustment.ts';
import { type Limit, type LimitInput, parseLimit } from '../core/limit.ts';
import type { Subject } from '../limits/window-set-source.ts';
import type { AdjustmentStore } from './ports.ts';

/** Who changes limits, why, and for how long. */
export interface ChangeOptions {
  /** Who makes the change: 1 to 200 printable characters. The history shows it. */
  readonly by: string;
  /** Why, for the history: 1 to 500 printable characters. */
  readonly reason?: string | undefined;
  /** When the adjustments are over, in milliseconds since 1970. By default they do not end. */
  readonly until?: number | undefined;
  /** How long they last, in milliseconds: 1 to a year. In place of `until`. */
  readonly forMs?: number | undefined;
  /** Confirms what `preview` warns of. */
  readonly confirm?: boolean | undefined;
  /**
   * The same adjustments in an open transaction of yours, e.g. `createPostgresAdjustments(executor)`. Your commit makes
   * the change, and a rollback leaves nothing of it. Call `refresh()` after the commit, so that this process obeys it
   * at once.
   */
  readonly transaction?: AdjustmentStore | undefined;
}

/** Provider and plan of an account, as its requests name them. */
export type AccountSubject = Pick<Subject, 'provider' | 'plan'>;

/** The caller's knowledge of a limit. */
export interface KnownLimit {
  /** Version of the adjustment that the caller saw; 0 if there was none. Any other version is a conflict. */
  readonly ifVersion?: number | undefined;
  /**
   * Of the account that the target names. Its present limits depend on them: `preview` and the warnings then say
   * it as `explain` does.
   */
  readonly subject?: AccountSubject | undefined;
}

/** Options of a change of one limit. */
export interface PutOptions extends ChangeOptions, KnownLimit {}

/** The effect on one limit. */
export interface LimitChange extends KnownLimit {
  readonly target: AdjustTarget;
  /** The new windows; `[]` removes the limit; `'recommended'` resets it to the base's limit. */
  readonly windows: LimitInput | 'recommended';
}

/** A change of one limit that is checked. */
export interface CheckedChange extends KnownLimit {
  readonly key: string;
  readonly target: AdjustTarget;
  /** Undefined resets the limit. */
  readonly windows: Limit | undefined;
}

/** Most limits of one change. */
export const MAX_CHANGES = 100;
const MAX_WINDOWS = 64;
const MAX_NAME = 1_024;
const MAX_BY = 200;
const MAX_REASON = 500;
const YEAR_MS = 366 * 86_400_000;
/** Control characters could forge lines of a log. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]/u;

const OPTIONS = ['by', 'reason', 'until', 'forMs', 'confirm', 'transaction'];

/** @throws OptionError, LimitError with the place of the fault */
export function checkChanges(changes: readonly LimitChange[]): readonly CheckedChange[] {
  if (!Array.isArray(changes) || changes.length === 0 || changes.length > MAX_CHANGES)
    throw new OptionError('changes', changes, `must be a list of 1 to ${MAX_CHANGES} changes`);
  const checked = changes.map(checkChange);
  const keys = new Set<string>();
  for (const { key, target } of checked) {
    if (keys.has(key)) throw new OptionError('changes', placeOfTarget(target), 'must name each limit only once');
    keys.add(key);
  }
  return checked;
}

/**
 * @returns when the adjustments are over, on the store's clock
 * @throws OptionError
 */
export function checkChangeOptions(options: ChangeOptions, now: number): number | undefined {
  checkOptions(options, OPTIONS, 'options');
  const { by, reason, until, forMs, confirm, transaction } = options;
  checkText('by', by, MAX_BY);
  if (reason !== undefined) checkText('reason', reason, MAX_REASON);
  if (confirm !== undefined && typeof confirm !== 'boolean')
    throw new OptionError('confirm', confirm, 'must be a boolean');
  if (transaction !== undefined)
    checkMethods('transaction', transaction, ['read', 'append', 'restore'], ', as createPostgresAdjustments() does');
  if (forMs !== undefined && until !== undefined)
    throw new OptionError('until', until, 'must not be given beside forMs');
  if (forMs !== undefined) {
    if (!isIn(forMs, 1, YEAR_MS))
      throw new OptionError('forMs', forMs, 'must be an integer of milliseconds up to a year');
    return now + forMs;
  }
  if (until !== undefined && !isIn(until, now + 1, now + YEAR_MS))
    throw new OptionError('until', until, 'must be milliseconds since 1970, in the future and at most a year from now');
  return until;
}

/** @throws OptionError */
export function checkTarget(target: AdjustTarget): string {
  checkNames(target, 'target');
  return targetKey(target);
}

function checkNames(names: object, place: string): void {
  for (const [field, name] of Object.entries(names ?? {})) {
    if (name === undefined) continue;
    if (typeof name !== 'string') throw new OptionError(`${place}.${field}`, name, 'must be a string');
    if (name === '' || name.length > MAX_NAME)
      throw new OptionError(`${place}.${field}`, name, `must have 1 to ${MAX_NAME} characters`);
  }
}

function checkText(option: string, value: unknown, max: number): void {
  // The Admin API counts code points too.
  if (typeof value !== 'string' || value === '' || [...value].length > max || UNPRINTABLE.test(value))
    throw new OptionError(option, value, `must be 1 to ${max} printable characters`);
}

function isIn(value: number, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && value >= least && value <= most;
}

function checkChange(change: LimitChange): CheckedChange {
  checkOptions(change, ['target', 'windows', 'ifVersion', 'subject'], 'change');
  const { target, windows, ifVersion, subject } = change;
  const key = checkTarget(target);
  if (subject !== undefined) checkSubject(subject, target);
  if (ifVersion !== undefined && !isIn(ifVersion, 0, Number.MAX_SAFE_INTEGER))
    throw new OptionError('ifVersion', ifVersion, 'must be the version of an adjustment, or 0');
  const limit = windows === 'recommended' ? undefined : parseLimit(windows, placeOfTarget(target));
  if (limit !== undefined && limit.length > MAX_WINDOWS)
    throw new OptionError(placeOfTarget(target), limit.length, `must have ${MAX_WINDOWS} windows at most`);
  // A copy, so that the caller cannot change it later.
  const named = Object.entries(target).filter(([, name]) => name !== undefined);
  return { key, target: Object.fromEntries(named), windows: limit, ifVersion, subject };
}

function checkSubject(subject: AccountSubject, { account }: AdjustTarget): void {
  checkOptions(subject, ['provider', 'plan'], 'subject');
  checkNames(subject, 'subject');
  if (account === undefined) throw new OptionError('subject', 'given', 'must only be given with target.account');
}
