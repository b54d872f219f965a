import type { AdjustedLimit, Adjustment, AdjustmentEntry, Head } from '../../core/adjustment.ts';
import type { CheckedChange } from './change.ts';
import { TooManyAdjustmentsError } from './errors.ts';
import { randomText } from './revision.ts';

/** The entry that follows a head. */
export function entryAfter(head: Head | undefined, entry: Omit<AdjustmentEntry, keyof Head>): AdjustmentEntry {
  return { version: (head?.version ?? 0) + 1, nonce: randomText(12), ...entry };
}

/**
 * What changes do to their limits. Those that reset what is not adjusted do nothing.
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
