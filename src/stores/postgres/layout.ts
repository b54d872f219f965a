import { getOrCreate } from '../../base/get-or-create.ts';
import { hasSharedCount, type NamedWindow, type WindowSet } from '../../core/window-set.ts';

/** How the windows of a window set are stored: see `sql/limits.sql`. */
export interface Layout {
  /** Whether it uses the row of the (account, route). */
  readonly own: boolean;
  /** Whether it uses the row that all routes of the account share. */
  readonly shared: boolean;
  readonly names: readonly string[];
  readonly maxes: readonly string[];
}

const layouts = new WeakMap<WindowSet, Layout>();

/** Returns the layout of a window set. It is created once per window set, because window sets are shared. */
export function layoutOf(windowSet: WindowSet): Layout {
  return getOrCreate(layouts, windowSet, () => {
    const { windows, routeWindows } = windowSet;
    const shared = hasSharedCount(windowSet);
    return {
      own: routeWindows > 0 || !shared,
      shared,
      names: windows.map((window) => windowName(window, shared)),
      maxes: windows.map(({ max }) => String(max)),
    };
  });
}

/** Limit and duration, which identify a window (S10). A bigint, because four times a duration can be unsafe. */
export function windowName(window: Pick<NamedWindow, 'limit' | 'durationMs'>, shared: boolean): string {
  const kind = window.limit === 'route' ? 0n : shared ? 2n : 1n;
  return String(BigInt(window.durationMs) * 4n + kind);
}
