import type { Plan } from '../../core/plan.ts';
import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** Windows that a check copies by a literal; most plans have no more. */
export const COPIED = 4;

/** Numbers that may be read behind a record's last: what such a copy takes too much. */
export const MARGIN = COPIED * SLOTS_PER_WINDOW;

/** Counters of a plan without any instance. */
export function blank(plan: Plan): Counters {
  return new Float64Array(plan.windows.length * SLOTS_PER_WINDOW).fill(NEVER);
}

/** The first `windows` windows at `at`, as an array of their own. */
export function copy(from: Counters, at: number, windows: number): ArrayLike<number> {
  return Array.from({ length: windows * SLOTS_PER_WINDOW }, (_, i) => from[at + i] as number);
}
