import type { Limit, LimitName, LimitWindow, Writable } from './limit.ts';
import type { InFlight } from './slot.ts';
import { REQUESTS } from './unit.ts';

/**
 * A window of a window set. (limit, durationMs, unit) identifies it, so a changed `max` applies to the existing count
 * (S10).
 */
export interface NamedWindow extends LimitWindow {
  readonly limit: LimitName;
  /** The group whose window it is. Only in the window set of a decision about groups; stores never see it (S31). */
  readonly group?: string | undefined;
}

/** The route of a request that names none: its limits count all routes of an account together (S34). */
export const EVERY_ROUTE = '*';

/** Which counters the All methods limit uses: separate ones for each route (S1), or one set for the whole account. */
export type AllMethodsScope = 'route' | 'account';

/**
 * Which window an accepted request shows: the window set's last one, or, of the route's last one and the window set's
 * last one, the one with the least remaining (S6).
 */
export type ShownWindow = 'last' | 'least';

/** The windows that one request must fit, in the order of checking. Immutable. Share it: stores cache by identity. */
export interface WindowSet {
  /**
   * The route's own windows, then the windows of All methods; the shorter window first within each (S2). If a window has
   * a unit: those of requests in this order, then those of each unit by its name (S33).
   */
  readonly windows: readonly NamedWindow[];
  /** `durationMs` and `max` of each of `windows` again, as flat arrays for the hot path. Never write to them. */
  readonly durations: Float64Array;
  readonly maxes: Float64Array;
  /** How many of `windows` are the route's own. */
  readonly routeWindows: number;
  readonly allMethodsScope: AllMethodsScope;
  readonly shows: ShownWindow;
  /** The lane that may use so much of each window (S28). Undefined for requests without a lane. */
  readonly lane?: string | undefined;
  /** The most requests at the same time (S29). For the limiter: stores count only windows by it. */
  readonly inFlight?: InFlight | undefined;
  /**
   * The same windows by their units, as stores count them: a store decides about the windows of one unit (S33). Undefined
   * if no window has a unit.
   */
  readonly units?: readonly UnitWindows[] | undefined;
  /** Whether a request is decided in several parts, because of `units` or `inFlight`. One look for the hot path. */
  readonly isJoint: boolean;
}

/** Windows of one unit that a store counts together. */
export interface UnitWindows {
  /** `requests` for windows without a unit. */
  readonly unit: string;
  /** These windows alone, without `units`. */
  readonly windowSet: WindowSet;
  /** Whether all routes of an account share them, although `windowSet` does not say so. */
  readonly isShared: boolean;
}

/**
 * The route under which a store counts windows of a unit. So the store needs not know units, and the counters of an
 * account stay together.
 */
export function routeOfUnit(route: string, { unit, isShared }: Omit<UnitWindows, 'windowSet'>): string {
  if (unit === REQUESTS) return route;
  return `${isShared ? EVERY_ROUTE : route}#${unit}`;
}

/** Whether a request is counted in windows that all routes of its account share. */
export function hasSharedCount({ windows, routeWindows, allMethodsScope }: WindowSet): boolean {
  return allMethodsScope === 'account' && windows.length > routeWindows;
}

/**
 * Puts the windows of a route's own limit and of All methods into the order of checking. Either may be empty; a window
 * set without windows limits nothing.
 */
export function createWindowSet(
  routeLimit: Limit,
  allMethods: Limit,
  allMethodsScope: AllMethodsScope = 'route',
  shows: ShownWindow = 'last',
  lane?: string,
  inFlight?: InFlight,
): WindowSet {
  const own = named('route', routeLimit);
  const ofAll = named('all-methods', allMethods);
  const windows = [...own, ...ofAll];
  if (windows.every(({ unit }) => unit === undefined))
    return windowSetOf(windows, own.length, allMethodsScope, shows, lane, inFlight);
  const units = unitsOf(own, ofAll, allMethodsScope, shows, lane);
  const inOrder = units.flatMap(({ windowSet }) => windowSet.windows);
  return windowSetOf(inOrder, own.length, allMethodsScope, shows, lane, inFlight, units);
}

function windowSetOf(
  windows: readonly NamedWindow[],
  routeWindows: number,
  allMethodsScope: AllMethodsScope,
  shows: ShownWindow,
  lane: string | undefined,
  inFlight?: InFlight,
  units?: readonly UnitWindows[],
): WindowSet {
  return Object.freeze({
    windows: Object.freeze(windows),
    durations: Float64Array.from(windows, (window) => window.durationMs),
    maxes: Float64Array.from(windows, (window) => window.max),
    routeWindows,
    allMethodsScope,
    shows,
    lane,
    inFlight,
    units,
    isJoint: inFlight !== undefined || units !== undefined,
  });
}

function unitsOf(
  own: readonly NamedWindow[],
  ofAll: readonly NamedWindow[],
  scope: AllMethodsScope,
  shows: ShownWindow,
  lane: string | undefined,
): readonly UnitWindows[] {
  // The empty text stands for requests, which come first.
  const units = [...new Set([...own, ...ofAll].map(({ unit = '' }) => unit))].sort();
  return units.flatMap((unit): UnitWindows[] => {
    const [ownHere, allHere] = [own, ofAll].map((list) => list.filter((window) => (window.unit ?? '') === unit)) as [
      NamedWindow[],
      NamedWindow[],
    ];
    if (unit === '' || scope === 'route') {
      const windowSet = windowSetOf([...ownHere, ...allHere], ownHere.length, scope, shows, lane);
      return [{ unit: unit || REQUESTS, windowSet, isShared: false }];
    }
    // The record that the routes of an account share in a store counts requests. Each unit has its own record.
    const parts = [
      { unit, windowSet: windowSetOf(ownHere, ownHere.length, 'route', shows, lane), isShared: false },
      { unit, windowSet: windowSetOf(allHere, 0, 'route', shows, lane), isShared: true },
    ];
    return parts.filter(({ windowSet }) => windowSet.windows.length > 0);
  });
}

/**
 * The same windows with other maxes, so with the same counters (S10). At least one request may be in flight, because a
 * part of one is none at all.
 */
export function withMaxes(windowSet: WindowSet, maxOf: (max: number) => number, lane = windowSet.lane): WindowSet {
  const { windows, allMethodsScope, shows, inFlight } = windowSet;
  const limitOf = (name: LimitName): Limit =>
    windows.filter(({ limit }) => limit === name).map((window) => ({ ...window, max: maxOf(window.max) }));
  const mostOf = (max: number | undefined): number | undefined =>
    max === undefined ? undefined : Math.min(max, Math.max(1, maxOf(max)));
  const most = inFlight && { route: mostOf(inFlight.route), allMethods: mostOf(inFlight.allMethods) };
  return createWindowSet(limitOf('route'), limitOf('all-methods'), allMethodsScope, shows, lane, most);
}

/** A share of a max, rounded down. Exact: 0.29 of 100 is 29, although 0.29 * 100 is less in binary fractions. */
export function shareOfMax(max: number, share: number): number {
  const [decimal = '', exponent = '0'] = String(share).split('e');
  const [whole, decimals = ''] = decimal.split('.');
  const places = decimals.length - Number(exponent);
  return Number((BigInt(max) * BigInt(`${whole}${decimals}`)) / 10n ** BigInt(places));
}

function named(limit: LimitName, windows: Limit): NamedWindow[] {
  return windows.map(({ max, durationMs, unit, name }) => {
    const window: Writable<NamedWindow> = { limit, max, durationMs };
    if (unit !== undefined) window.unit = unit;
    if (name !== undefined) window.name = name;
    return Object.freeze(window);
  });
}
