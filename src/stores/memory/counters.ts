import type { Plan } from '../../core/plan.ts';
import { type Counters, NEVER, SLOTS_PER_WINDOW } from '../../core/window.ts';

/** Counters of a plan without any instance. */
export function blank(plan: Plan): Counters {
  return new Float64Array(plan.windows.length * SLOTS_PER_WINDOW).fill(NEVER);
}

/** The first `windows` windows at `at`, as an array of their own: literals for the usual numbers, since they are the cheapest copy there is. */
export function copy(from: Counters, at: number, windows: number): ArrayLike<number> {
  switch (windows) {
    case 1:
      return [from[at] as number, from[at + 1] as number];
    case 2:
      return [from[at] as number, from[at + 1] as number, from[at + 2] as number, from[at + 3] as number];
    case 3:
      return [
        from[at] as number,
        from[at + 1] as number,
        from[at + 2] as number,
        from[at + 3] as number,
        from[at + 4] as number,
        from[at + 5] as number,
      ];
    case 4:
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
    default:
      return Array.from({ length: windows * SLOTS_PER_WINDOW }, (_, i) => from[at + i] as number);
  }
}
