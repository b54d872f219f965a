import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';
import type { WindowSet } from '../../core/window-set.ts';

/**
 * Up to this many windows, a check copies the counters by an array literal of fixed size. Most window sets have no
 * more.
 */
export const WINDOWS_PER_LITERAL = 4;

/** How many numbers after the last record such a literal can read. */
export const OVERREAD = WINDOWS_PER_LITERAL * SLOTS_PER_WINDOW;

/** Counters of a window set whose windows are without an instance. */
export function emptyCounters(windowSet: WindowSet): Counters {
  return new Float64Array(windowSet.windows.length * SLOTS_PER_WINDOW).fill(NEVER);
}

/** Copies the counters of `windows` windows from index `at` on. */
export function copyCounters(from: Counters, at: number, windows: number): ArrayLike<number> {
  return Array.from({ length: windows * SLOTS_PER_WINDOW }, (_, i) => from[at + i] as number);
}
