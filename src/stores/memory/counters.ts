import type { Plan } from '../../core/plan.ts';
import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** Up to this many windows, a check copies the counters by an array literal of fixed size. Most plans have no more. */
export const WINDOWS_PER_LITERAL = 4;

/** How many numbers after the last record such a literal can read. */
export const OVERREAD = WINDOWS_PER_LITERAL * SLOTS_PER_WINDOW;

/** Counters of a plan whose windows have no instance. */
export function emptyCounters(plan: Plan): Counters {
  return new Float64Array(plan.windows.length * SLOTS_PER_WINDOW).fill(NEVER);
}

/** Copies the counters of `windows` windows from index `at` on. */
export function copyCounters(from: Counters, at: number, windows: number): ArrayLike<number> {
  return Array.from({ length: windows * SLOTS_PER_WINDOW }, (_, i) => from[at + i] as number);
}
