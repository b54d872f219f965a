import type { Plan, PlanWindow } from '../../core/plan.ts';

/** The windows of a plan that stand in one record: all of them, unless All methods is shared by the account's routes (S1). */
export interface Part {
  readonly windows: readonly PlanWindow[];
  /** Windows `from` to `to` (excluded) of the plan. */
  readonly from: number;
  readonly to: number;
  /** The windows' identities; equal layouts have equal records. */
  readonly layout: string;
}

/** A plan as records hold it: what stands with the route, and what stands with the account. */
export interface Parts {
  readonly own: Part;
  readonly shared: Part | undefined;
}

/** Cuts a plan into its parts. */
export function partsOf(plan: Plan): Parts {
  const all = plan.windows.length;
  const shared = plan.allMethodsScope === 'account' && plan.routeWindows < all;
  const ownEnd = shared ? plan.routeWindows : all;
  return {
    own: cut(plan.windows, 0, ownEnd),
    shared: shared ? cut(plan.windows, ownEnd, all) : undefined,
  };
}

/** A part that holds just these windows, wherever they came from. */
export function partOf(windows: readonly PlanWindow[]): Part {
  return cut(windows, 0, windows.length);
}

/** Whether two windows are the same one: their limit and duration are, whatever their max (S10). */
export function isSameWindow(
  a: { limit: string; durationMs: number },
  b: { limit: string; durationMs: number },
): boolean {
  return a.durationMs === b.durationMs && a.limit === b.limit;
}

function cut(windows: readonly PlanWindow[], from: number, to: number): Part {
  const part = windows.slice(from, to);
  return { windows: part, from, to, layout: part.map(({ limit, durationMs }) => `${limit}:${durationMs}`).join() };
}
