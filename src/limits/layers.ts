import { getOrCreate } from '../base/get-or-create.ts';
import type { AdjustTarget } from '../core/adjustment.ts';
import type { Limit } from '../core/limit.ts';
import { type AllMethodsScope, createWindowSet, type WindowSet } from '../core/window-set.ts';
import { hasInFlight, mostInFlight } from './in-flight.ts';
import type { Lanes } from './lanes.ts';

/**
 * A checked All methods limit. Without its own scope, it uses the scope of the less specific layer, so that an
 * adjustment does not change the scope.
 */
export interface AllMethods {
  readonly windows: Limit;
  readonly scope: AllMethodsScope | undefined;
}

/** What a window set takes from a layer. */
export interface LimitLayer {
  readonly allMethods: AllMethods | undefined;
  routeLimit(route: string): Limit | undefined;
  /** The most requests in flight; false removes the bound of less specific layers, undefined leaves it. */
  inFlight?(route: string | undefined): number | false | undefined;
  /** Routes with their own limit in this layer. `routeLimit` returns the limit of any other route. */
  readonly routes: Iterable<string>;
}

/** A new limit for a route, or (undefined) for all of them. Without windows, the initial limit comes back (S10). */
export type LayerChange = readonly [route: string | undefined, windows: Limit | undefined];

const NO_LIMIT: Limit = /* @__PURE__ */ Object.freeze([]);

/** Without groups and lanes. */
export const NOTHING_BESIDE: BesideLayers = /* @__PURE__ */ Object.freeze({
  groups: undefined,
  lanes: /* @__PURE__ */ new Map(),
});

/** What applies to the limits of every layer. */
export interface BesideLayers {
  /** Undefined without groups. */
  readonly groups: ReadonlyMap<string, Layer> | undefined;
  readonly lanes: Lanes;
}

/** Limits of a layer that are checked. */
interface CheckedLimits extends BesideLayers {
  readonly allMethods: AllMethods | undefined;
  readonly routes: ReadonlyMap<string, Limit>;
  /** The most requests in flight, by route; the key of All methods is undefined. */
  readonly inFlight?: ReadonlyMap<string | undefined, number | false> | undefined;
  /** Whether the user said that this layer limits nothing. */
  readonly isUnlimited: boolean;
}

/**
 * The limits of one layer, with adjustments over them. Immutable: window sets are cached by the identity of their
 * layers.
 */
export class Layer implements LimitLayer {
  readonly #initial: CheckedLimits;
  readonly #unadjusted: Layer;
  /** By route; the key of All methods is undefined. */
  readonly #adjustments: ReadonlyMap<string | undefined, Limit>;
  readonly allMethods: AllMethods | undefined;
  readonly #routes: ReadonlyMap<string, Limit>;

  constructor(
    initial: CheckedLimits,
    unadjusted?: Layer,
    adjustments: ReadonlyMap<string | undefined, Limit> = new Map(),
  ) {
    this.#initial = initial;
    this.#unadjusted = unadjusted ?? this;
    this.#adjustments = adjustments;
    const { allMethods, routes } = initial;
    const windows = adjustments.get(undefined);
    // The scope does not change.
    this.allMethods = windows === undefined ? allMethods : { windows, scope: allMethods?.scope };
    this.#routes = adjustments.size === 0 ? routes : merge(routes, adjustments);
  }

  get isUnlimited(): boolean {
    return this.#initial.isUnlimited;
  }

  /** The limits of groups, by their names; undefined without groups. */
  get groups(): ReadonlyMap<string, Layer> | undefined {
    return this.#initial.groups?.size ? this.#initial.groups : undefined;
  }

  /** Lanes of all layers. Only the default layer has some. */
  get lanes(): Lanes {
    return this.#initial.lanes;
  }

  /**
   * Whether a limit of this layer, or one that is added to it, depends on the route or counts each route separately.
   * @param inherited the scope of its windows if they have none
   */
  needsRoute(inherited: AllMethodsScope): boolean {
    const { windows = NO_LIMIT, scope = inherited } = this.allMethods ?? {};
    const { inFlight } = this.#initial;
    const namesRoute = this.#routes.size > 0 || hasInFlight(inFlight, (route) => route !== undefined);
    return this.isUnlimited || namesRoute || (scope === 'route' && windows.length > 0);
  }

  /** This layer without any adjustment. */
  get unadjusted(): Layer {
    return this.#unadjusted;
  }

  /** Whether a limit of this layer contains a window. */
  get hasWindows(): boolean {
    return this.longestMs > 0;
  }

  /** The longest duration of a window, in milliseconds; 0 without windows. */
  get longestMs(): number {
    return longestOf(this.limits);
  }

  /** Every limit of this layer. */
  get limits(): readonly Limit[] {
    return [this.allMethods?.windows ?? NO_LIMIT, ...this.#routes.values()];
  }

  routeLimit(route: string): Limit | undefined {
    return this.#routes.get(route);
  }

  inFlight(route: string | undefined): number | false | undefined {
    return this.#initial.inFlight?.get(route);
  }

  /** Whether this layer bounds the requests in flight. */
  get boundsInFlight(): boolean {
    return hasInFlight(this.#initial.inFlight, (_, most) => most !== false);
  }

  get routes(): Iterable<string> {
    const { inFlight } = this.#initial;
    if (inFlight === undefined) return this.#routes.keys();
    return new Set([...this.#routes.keys(), ...[...inFlight.keys()].filter((route) => route !== undefined)]);
  }

  /** This layer with new limits. Once no limit is adjusted, it is the initial layer itself. */
  adjusted(changes: Iterable<LayerChange>): Layer {
    const adjustments = new Map(this.#adjustments);
    for (const [route, windows] of changes) {
      if (windows === undefined) adjustments.delete(route);
      else adjustments.set(route, windows);
    }
    return adjustments.size === 0 ? this.#unadjusted : new Layer(this.#initial, this.#unadjusted, adjustments);
  }
}

/** The layer of a name without its own limits. */
export const NO_LAYER: Layer = /* @__PURE__ */ new Layer({
  allMethods: undefined,
  routes: /* @__PURE__ */ new Map(),
  isUnlimited: false,
  // Not spread: a bundler could not leave it out.
  groups: undefined,
  lanes: /* @__PURE__ */ new Map(),
});

/** Windows of a limit are in the order of their durations. */
export function longestOf(limits: readonly Limit[]): number {
  return limits.reduce((longest, limit) => Math.max(longest, limit.at(-1)?.durationMs ?? 0), 0);
}

/**
 * Creates the window set of a route from layers. The same limits give the same window set, also after one of the layers
 * was replaced: stores cache by the identity of a window set.
 */
export class WindowSetFactory {
  /** By the route's own limit, which is rare, then by the limit of All methods, then by everything else. */
  readonly #windowSets = new WeakMap<Limit, WeakMap<Limit, Map<string, WindowSet>>>();

  /** @param layers the most specific first */
  createWindowSet(layers: readonly LimitLayer[], route: string): WindowSet {
    const routeLimit = firstDefined(layers, (layer) => layer.routeLimit(route)) ?? NO_LIMIT;
    const allMethods = firstDefined(layers, (layer) => layer.allMethods)?.windows ?? NO_LIMIT;
    const scope = firstDefined(layers, (layer) => layer.allMethods?.scope) ?? 'route';
    const ofRouteLimit = getOrCreate(this.#windowSets, routeLimit, () => new WeakMap());
    const others = getOrCreate(ofRouteLimit, allMethods, () => new Map());
    const inFlight = mostInFlight(
      firstDefined(layers, (layer) => layer.inFlight?.(route)),
      firstDefined(layers, (layer) => layer.inFlight?.(undefined)),
    );
    const key = inFlight === undefined ? scope : `${scope} ${inFlight.route} ${inFlight.allMethods}`;
    return getOrCreate(others, key, () => createWindowSet(routeLimit, allMethods, scope, 'last', undefined, inFlight));
  }
}

function merge(
  routes: ReadonlyMap<string, Limit>,
  adjustments: ReadonlyMap<string | undefined, Limit>,
): ReadonlyMap<string, Limit> {
  const merged = new Map(routes);
  for (const [route, limit] of adjustments) if (route !== undefined) merged.set(route, limit);
  return merged;
}

function firstDefined<T>(layers: readonly LimitLayer[], read: (layer: LimitLayer) => T | undefined): T | undefined {
  for (const layer of layers) {
    const value = read(layer);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** The limit of a layer that a target names. */
export function limitOf(layer: Layer | undefined, { route }: AdjustTarget): Limit | undefined {
  return route === undefined ? layer?.allMethods?.windows : layer?.routeLimit(route);
}
