import { OptionError } from '../../base/errors.ts';
import type { NamedWindow, WindowSet } from '../../core/window-set.ts';
import { MAX_WINDOWS } from './slab.ts';

/** The windows of a window set that share one record. */
export interface WindowSetPart {
  readonly windows: readonly NamedWindow[];
  /** The part contains the window set's windows `from` to `to` (excluded). */
  readonly from: number;
  readonly to: number;
  /** Identifies the windows and their order; records with equal layouts share one form. */
  readonly layout: string;
  /** Whether all routes of the account share the record. */
  readonly shared: boolean;
}

/**
 * Splits a window set into the windows of the route's own record and, if the account's routes share All methods, the
 * windows of the account's record (S1).
 * @throws OptionError if so many windows do not fit a record
 */
export function partsOf({ windows, routeWindows, allMethodsScope }: WindowSet): readonly WindowSetPart[] {
  const own = allMethodsScope === 'account' ? routeWindows : windows.length;
  return [partOf(windows, 0, own), partOf(windows, own, windows.length, true)].filter(({ from, to }) => from < to);
}

/** The part of the windows `from` to `to` (excluded). */
export function partOf(windows: readonly NamedWindow[], from = 0, to = windows.length, shared = false): WindowSetPart {
  if (to - from > MAX_WINDOWS) {
    throw new OptionError('windowSet', to - from, `a record has room for at most ${MAX_WINDOWS} windows`);
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

/** Index of the window with the same limit and duration, which identify it (S10); -1 if there is none. */
export function indexOfWindow(
  windows: readonly NamedWindow[],
  { limit, durationMs }: Omit<NamedWindow, 'max'>,
): number {
  return windows.findIndex((window) => window.durationMs === durationMs && window.limit === limit);
}
