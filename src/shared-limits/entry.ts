import {
  type AdjustedLimit,
  type Adjustment,
  type AdjustmentEntry,
  type Head,
  placeOfTarget,
} from '../core/adjustment.ts';
import type { CheckedChange } from './change.ts';
import { AdjustmentConflictError, TooManyAdjustmentsError } from './errors.ts';
import { randomText } from './revision.ts';

/** The entry that follows a head. */
export function entryAfter(head: Head | undefined, entry: Omit<AdjustmentEntry, keyof Head>): AdjustmentEntry {
  return { version: (head?.version ?? 0) + 1, nonce: randomText(12), ...entry };
}

/** The entry that ends adjustments; undefined if there is none to end. */
export function expiryAfter(
  head: Head | undefined,
  over: readonly Adjustment[],
  at: number,
): AdjustmentEntry | undefined {
  const limits = over.map(({ target, windows }) => ({ target, from: windows, to: undefined }));
  if (limits.length === 0) return undefined;
  return entryAfter(head, { at, by: 'headgate', reason: undefined, source: 'expiry', limits });
}

/**
 * @param currentOf returns the adjustment of a limit by its `targetKey`
 * @throws AdjustmentConflictError if the version of a limit is not the one that its caller saw
 */
export function checkVersions(
  changes: readonly CheckedChange[],
  currentOf: (key: string) => Adjustment | undefined,
): void {
  for (const { key, target, ifVersion } of changes) {
    const current = currentOf(key);
    if (ifVersion !== undefined && ifVersion !== (current?.version ?? 0))
      throw new AdjustmentConflictError(target, current);
  }
}

/**
 * The effects of changes on their limits. A reset of a limit that is not adjusted does nothing.
 * @param adjustments by `targetKey`
 * @param until when they are over
 */
export function adjustedLimits(
  changes: readonly CheckedChange[],
  adjustments: ReadonlyMap<string, Adjustment>,
  until: number | undefined,
): readonly AdjustedLimit[] {
  return changes.flatMap(({ key, target, windows }) => {
    const from = adjustments.get(key)?.windows;
    if (windows === undefined && from === undefined) return [];
    return [{ target, from, to: windows, until: windows === undefined ? undefined : until }];
  });
}

/** @throws TooManyAdjustmentsError if there would be more adjustments than `max` */
export function checkRoom(
  changes: readonly CheckedChange[],
  adjustments: ReadonlyMap<string, Adjustment>,
  max: number,
): void {
  const added = changes.filter(({ key, windows }) => windows !== undefined && !adjustments.has(key)).length;
  if (added > 0 && adjustments.size + added > max) throw new TooManyAdjustmentsError(max);
}

/** The log's text about a change that is missing in a store with another history. */
export function textOfLost({ version, by, limits }: AdjustmentEntry): string {
  const places = limits.map(({ target }) => placeOfTarget(target)).join(', ');
  return `headgate: the change ${version} by ${by} is gone, the store has another history: ${places}`;
}

/** Most adjustments that one line of the log names. */
const SHOWN = 5;

/** The log's text about adjustments beneath which the base changed. */
export function textOfHidden(adjustments: readonly Adjustment[]): string {
  const shown = adjustments.slice(0, SHOWN).map(({ target, by }) => `${placeOfTarget(target)} by ${by}`);
  const others = adjustments.length > SHOWN ? `, and ${adjustments.length - SHOWN} more` : '';
  return `headgate: the base changed beneath adjustments, which go on to apply: ${shown.join(', ')}${others}`;
}
