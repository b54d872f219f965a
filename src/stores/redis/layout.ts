import type { Plan, PlanWindow } from '../../core/plan.ts';

/** How a plan's windows stand in records, and what the scripts are told of them: the same strings at every call. */
export interface Layout {
  /** How many windows stand in the first record. */
  readonly ownWindows: number;
  /** What the list of `consume.lua` has behind the cost, its end included. */
  readonly listEnd: string;
  /** Its arguments that say how the plan's windows stand in records. */
  readonly heads: readonly string[];
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
  const ownWindows = allMethodsScope === 'account' ? routeWindows : windows.length;
  const records = allMethodsScope === 'account' ? [windows.slice(0, ownWindows), windows.slice(ownWindows)] : [windows];
  const numbers = windows.flatMap(({ max, durationMs }) => [max, durationMs]);
  return {
    ownWindows,
    listEnd: `${[records.length, ...numbers].join()}]`,
    heads: records.flatMap((inRecord) => [headOf(inRecord), `<${'dd'.repeat(inRecord.length)}`]),
  };
}

function headOf(windows: readonly PlanWindow[]): string {
  return `${windows.map(windowName).join('')}|`;
}
