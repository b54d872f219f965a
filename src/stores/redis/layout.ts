import type { NamedWindow, WindowSet } from '../../core/window-set.ts';

/**
 * How the windows of a window set are stored in records, as the scripts' arguments. They are the same strings in every
 * call.
 */
export interface Layout {
  /** How many windows are in the record of the (account, route). */
  readonly ownWindows: number;
  /** ARGV[2] of `consume.lua` after the cost. */
  readonly listEnd: string;
  /** ARGV[3..] of `consume.lua`: head and layout of each record. */
  readonly heads: readonly string[];
}

const layouts = new WeakMap<WindowSet, Layout>();

/** Returns the layout of a window set. It is created once per window set, because window sets are shared. */
export function layoutOf(windowSet: WindowSet): Layout {
  let layout = layouts.get(windowSet);
  if (layout === undefined) {
    layout = createLayout(windowSet);
    layouts.set(windowSet, layout);
  }
  return layout;
}

/** A window's name in the head of a record: limit and duration, which identify a window (S10). */
export function windowName({ limit, durationMs }: Pick<NamedWindow, 'limit' | 'durationMs'>): string {
  return `${limit === 'route' ? 'r' : 'a'}${durationMs}`;
}

function createLayout({ windows, allMethodsScope, routeWindows }: WindowSet): Layout {
  const ownWindows = allMethodsScope === 'account' ? routeWindows : windows.length;
  const records = allMethodsScope === 'account' ? [windows.slice(0, ownWindows), windows.slice(ownWindows)] : [windows];
  const numbers = windows.flatMap(({ max, durationMs }) => [max, durationMs]);
  return {
    ownWindows,
    listEnd: `${[records.length, ...numbers].join()}]`,
    heads: records.flatMap((inRecord) => [headOf(inRecord), `<${'dd'.repeat(inRecord.length)}`]),
  };
}

function headOf(windows: readonly NamedWindow[]): string {
  return `${windows.map(windowName).join('')}|`;
}
