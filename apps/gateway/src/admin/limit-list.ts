import { parseLimit } from 'headgate';
import { layerOf } from 'headgate/internal';
import type { AdjustTarget, LayeredLimits, LimitSet } from 'headgate/limits';
import { recommendedLimits } from 'headgate/recommended';
import type { Adjustment } from 'headgate/stores';
import { inFlightOf, windowsOf } from '../config/limits.ts';
import type { Config } from '../config/schema.ts';
import type { ListedLimit } from './limit-index.ts';
import { textsOf } from './limit-origins.ts';
import type { GroupLimit } from './limit-schemas.ts';

/** One limit of a layer, as the Admin API shows it. */
export interface ShownLimit {
  readonly target: AdjustTarget;
  readonly limit: 'route' | 'all-methods';
  /** The config's windows; null if the config does not set the limit. */
  readonly base: string[] | null;
  readonly recommended: string[] | null;
  readonly effective: string[] | null;
  /** The most requests in flight; null if the config leaves them to less specific layers. */
  readonly inFlight: number | false | null;
  readonly adjusted: {
    readonly windows: string[];
    readonly version: number;
    readonly by: string;
    readonly reason: string | null;
    readonly at: string;
    readonly until: string | null;
  } | null;
}

/** @param limits the config's limits */
export function shownLimit(
  limits: LayeredLimits,
  { target, adjustment }: Pick<ListedLimit, 'target' | 'adjustment'>,
): ShownLimit {
  const base = limitIn(setOf(limits, target), target.route);
  const adjusted = adjustment === undefined ? null : shownAdjustment(adjustment);
  return {
    target,
    limit: target.route === undefined ? 'all-methods' : 'route',
    base,
    recommended: limitIn(recommendedSet(target), target.route),
    effective: adjusted?.windows ?? base,
    inFlight: inFlightOf(inputIn(setOf(limits, target), target.route)) ?? null,
    adjusted,
  };
}

/** The limits of groups, which are beneath those of the accounts `group:NAME:ID`. */
export function groupLimits({ groups = {} }: LayeredLimits): GroupLimit[] {
  return Object.entries(groups).flatMap(([group, layer]) => {
    // The config has no list of windows in place of a layer.
    const set = layer as LimitSet;
    return [undefined, ...Object.keys(set.routes ?? {})]
      .filter((route) => inputIn(set, route) !== undefined)
      .map((route) => ({
        group,
        limit: route === undefined ? ('all-methods' as const) : ('route' as const),
        route: route ?? null,
        windows: limitIn(set, route),
        inFlight: inFlightOf(inputIn(set, route)) ?? null,
      }));
  });
}

/** Headgate's recommendation for a provider's limit; null if headgate recommends nothing for it. */
export function recommendationFor(target: AdjustTarget): string[] | null {
  return limitIn(recommendedSet(target), target.route);
}

/** The `limits` of the config in which each adjustment is written as if it were the config's. */
export function exportLimits({ limits }: Config, adjustments: readonly Adjustment[]): Config['limits'] {
  const merged = structuredClone(limits);
  for (const { target, windows } of adjustments) {
    const { layer, name } = layerOf(target);
    const set = layer === 'default' ? merged.default : ownOrNew(merged[`${layer}s`], name);
    const texts = textsOf(windows);
    if (target.route !== undefined) {
      set.routes ??= {};
      define(set.routes, target.route, withWindows(ownValue(set.routes, target.route), texts));
    } else {
      set.allMethods = withWindows(set.allMethods, texts);
    }
  }
  return merged;
}

function setOf(limits: LayeredLimits, target: AdjustTarget): LimitSet | undefined {
  const { layer, name } = layerOf(target);
  return layer === 'default' ? limits.default : ownValue(limits[`${layer}s`], name);
}

function recommendedSet({ provider }: AdjustTarget): LimitSet | undefined {
  return provider === undefined ? undefined : ownValue<LimitSet>(recommendedLimits, provider);
}

/** What the config says of a limit; undefined if nothing. */
function inputIn(set: LimitSet | undefined, route: string | undefined) {
  return route === undefined ? set?.allMethods : ownValue(set?.routes, route);
}

function limitIn(set: LimitSet | undefined, route: string | undefined): string[] | null {
  const input = windowsOf(inputIn(set, route));
  return input === undefined ? null : textsOf(parseLimit(input));
}

/** The limit with other windows. Its scope and its requests in flight stay. */
function withWindows<Limit extends object>(limit: Limit | undefined, windows: string[]) {
  return limit === undefined || Array.isArray(limit) ? windows : { ...limit, windows };
}

function shownAdjustment({ windows, version, by, reason, at, until }: Adjustment): NonNullable<ShownLimit['adjusted']> {
  return {
    windows: textsOf(windows),
    version,
    by,
    reason: reason ?? null,
    at: new Date(at).toISOString(),
    until: until === undefined ? null : new Date(until).toISOString(),
  };
}

/** An account may be called `__proto__`. */
function ownValue<Value>(values: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined {
  return values !== undefined && Object.hasOwn(values, name) ? values[name] : undefined;
}

function ownOrNew(sets: Config['limits']['plans'], name: string): Config['limits']['default'] {
  const known = ownValue(sets, name);
  if (known !== undefined) return known;
  const set = {};
  define(sets, name, set);
  return set;
}

/** Defines a property. An assignment of `__proto__` would set the prototype. */
function define(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}
