import type { Plan } from '../../core/plan.ts';
import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** Windows that {@link copy} copies at once; most plans have no more. */
const COPIED = 4;

/** Numbers that may be read behind a record's last: what {@link copy} takes too much. */
export const MARGIN = COPIED * SLOTS_PER_WINDOW;

/** Counters of a plan without any instance. */
export function blank(plan: Plan): Counters {
  return new Float64Array(plan.windows.length * SLOTS_PER_WINDOW).fill(NEVER);
}

/**
 * The first `windows` windows at `at`, as an array of their own. A literal is the cheapest copy there is, and one for all the usual numbers is short
 * enough to be compiled into its caller: what stands behind the windows comes along and is never read.
 */
export function copy(from: Counters, at: number, windows: number): ArrayLike<number> {
  if (windows > COPIED) return copyMany(from, at, windows);
  return [
    from[at] as number,
    from[at + 1] as number,
    from[at + 2] as number,
    from[at + 3] as number,
    from[at + 4] as number,
    from[at + 5] as number,
    from[at + 6] as number,
    from[at + 7] as number,
  ];
}

function copyMany(from: Counters, at: number, windows: number): number[] {
  return Array.from({ length: windows * SLOTS_PER_WINDOW }, (_, i) => from[at + i] as number);
}
