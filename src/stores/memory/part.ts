import { OptionError } from '../../core/errors.ts';
import type { Plan, PlanWindow } from '../../core/plan.ts';
import { MAX_WINDOWS } from './slab.ts';

/** Windows of a plan that stand in one record. */
export interface Part {
  readonly windows: readonly PlanWindow[];
  /** Windows `from` to `to` (excluded) of the plan. */
  readonly from: number;
  readonly to: number;
  /** The windows' identities; equal layouts have equal records. */
  readonly layout: string;
  /** Whether its record is one for all routes of the account. */
  readonly shared: boolean;
}

/**
 * Cuts a plan into what stands with the route and, where All methods is shared by the account's routes, what stands with the account (S1).
 * @throws OptionError where no record can hold as many windows
 */
export function partsOf({ windows, routeWindows, allMethodsScope }: Plan): readonly Part[] {
  const own = allMethodsScope === 'account' ? routeWindows : windows.length;
  return [partOf(windows, 0, own), partOf(windows, own, windows.length, true)].filter(({ from, to }) => from < to);
}

/** A part of just these windows. */
export function partOf(windows: readonly PlanWindow[], from = 0, to = windows.length, shared = false): Part {
  if (to - from > MAX_WINDOWS) {
    throw new OptionError('plan', to - from, `a record holds at most ${MAX_WINDOWS} windows`);
  }
  const part = windows.slice(from, to);
  return {
    windows: part,
    from,
    to,
    layout: part.map(({ limit, durationMs }) => `${limit}:${durationMs}`).join(),
    shared,
  };
}

/** Place of a window among others, whatever its max: its limit and duration are its identity (S10). -1 where it is not among them. */
export function indexOfWindow(windows: readonly PlanWindow[], { limit, durationMs }: Omit<PlanWindow, 'max'>): number {
  return windows.findIndex((window) => window.durationMs === durationMs && window.limit === limit);
}
