import type { Plan, PlanWindow } from '../../core/plan.ts';

/** How a plan's windows stand in records, and what the scripts are told of them: the same strings at every call. */
export interface Layout {
  /** Heads of the records that a check touches: the (account, route)'s and, where All methods counts once for the account, the shared one. */
  readonly heads: readonly string[];
  /** How many windows stand in the first record. */
  readonly ownWindows: number;
  /** The arguments of `consume.lua` that say what the plan is. */
  readonly consumeArguments: readonly string[];
}

const layouts = new WeakMap<Plan, Layout>();

/** The layout of a plan; plans are shared, so each is laid out once. */
export function layoutOf(plan: Plan): Layout {
  let layout = layouts.get(plan);
  if (layout === undefined) {
    layout = createLayout(plan);
    layouts.set(plan, layout);
  }
  return layout;
}

/** A window's name in a record's head; it is what identifies a window (S10). */
export function windowName({ limit, durationMs }: Pick<PlanWindow, 'limit' | 'durationMs'>): string {
  return `${limit === 'route' ? 'r' : 'a'}${durationMs}`;
}

function createLayout({ windows, allMethodsScope, routeWindows }: Plan): Layout {
  const shares = allMethodsScope === 'account';
  const ownWindows = shares ? routeWindows : windows.length;
  const heads = shares ? [headOf(windows.slice(0, ownWindows)), headOf(windows.slice(ownWindows))] : [headOf(windows)];
  const numbers = windows.flatMap(({ max, durationMs }) => [String(max), String(durationMs)]);
  return {
    heads,
    ownWindows,
    consumeArguments: [heads[0] as string, heads[1] ?? '', String(windows.length), ...numbers],
  };
}

function headOf(windows: readonly PlanWindow[]): string {
  return `${windows.map(windowName).join('')}|`;
}
