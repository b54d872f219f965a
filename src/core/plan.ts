import type { Limit, LimitName, Window } from './limit.ts';

/** A window of a plan; (limit, durationMs) is its identity, so a new max meets the old count (S10). */
export interface PlanWindow extends Window {
  readonly limit: LimitName;
}

/** Where the All methods counters of a plan live: with each route (S1), or once for the whole account. */
export type AllMethodsScope = 'route' | 'account';

/** The windows that one request must fit, in the order in which they are checked. Immutable; share it, since stores cache by identity. */
export interface Plan {
  /** The route's own windows, then All methods'; within each the shorter first (S2). */
  readonly windows: readonly PlanWindow[];
  /** `durationMs` of each of `windows`, and `max` of each: the same numbers again, flat, for the hot path. Not to be written to. */
  readonly durations: Float64Array;
  readonly maxes: Float64Array;
  /** How many of `windows` are the route's own. */
  readonly routeWindows: number;
  readonly allMethodsScope: AllMethodsScope;
}

/** Puts a route's own limit and All methods into the order of checking. Either may be empty; both empty is "not limited". */
export function createPlan(routeLimit: Limit, allMethods: Limit, allMethodsScope: AllMethodsScope = 'route'): Plan {
  const windows = Object.freeze([...named('route', routeLimit), ...named('all-methods', allMethods)]);
  return Object.freeze({
    windows,
    durations: Float64Array.from(windows, (window) => window.durationMs),
    maxes: Float64Array.from(windows, (window) => window.max),
    routeWindows: routeLimit.length,
    allMethodsScope,
  });
}

function named(limit: LimitName, windows: Limit): PlanWindow[] {
  return windows.map(({ max, durationMs }) => Object.freeze({ limit, max, durationMs }));
}
