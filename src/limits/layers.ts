import { LimitError, OptionError } from '../base/errors.ts';
import { getOrCreate } from '../base/get-or-create.ts';
import { checkOptions, isPlainObject, readByName } from '../base/options.ts';
import type { AdjustTarget } from '../core/adjustment.ts';
import { type Limit, type LimitInput, parseLimit } from '../core/limit.ts';
import { type AllMethodsScope, createWindowSet, type WindowSet } from '../core/window-set.ts';
import { checkGroupName } from './groups.ts';
import { checkInFlight, hasInFlight, type InFlightInput, mostInFlight } from './in-flight.ts';
import { type Lanes, parseLanes } from './lanes.ts';

/** The limit that applies to all routes, and the scope of its counters. */
export interface ScopedLimitInput extends InFlightInput {
  /**
   * The windows, as in `['60/1m', '5000/1d']`. Beside `inFlight` they can be left out: then they come from a less specific
   * layer.
   */
  readonly windows?: LimitInput | undefined;
  /**
   * `route`: each route of an account is counted apart (S1). `account`: all routes of an account share one counter.
   * @default the scope of the layer that this one replaces, and `route` if that has none
   */
  readonly scope?: AllMethodsScope | undefined;
}

/** The own limit of a route: its windows, and how many of its requests may be in flight. */
export interface RouteLimitInput extends InFlightInput {
  /** The windows. Beside `inFlight` they can be left out: then they come from a less specific layer. */
  readonly windows?: LimitInput | undefined;
}

/**
 * The limits of one layer. A limit that is absent comes from a less specific layer. `[]` as a limit removes it. Windows
 * of All methods without a scope are counted as in the layer that they replace.
 */
export interface LimitSet {
  /** Applies to every route. */
  readonly allMethods?: LimitInput | ScopedLimitInput | undefined;
  /** Additional limits per route, as in `{ 'POST /api/v1/emails': ['10/1m', '200/1d'] }`. */
  readonly routes?: Readonly<Record<string, LimitInput | RouteLimitInput>> | undefined;
  /**
   * Says that requests are not limited, in place of windows. Limits without any window are an error otherwise. Only for
   * the limits of every account: a layer of a provider or an account removes a limit with `[]`.
   */
  readonly unlimited?: true | undefined;
  /**
   * Limits of groups, by their names: see `groups` of {@link LayeredLimits}. Only for the limits of every account, and
   * beside `default` if there are layers.
   */
  readonly groups?: Readonly<Record<string, LimitInput | LimitSet>> | undefined;
  /**
   * Lanes, and the share of each max that their requests may use, as in `{ bulk: 0.9 }`: above 0, and at most 1. What
   * it makes of a max is rounded down. So a tenth of each window is left to requests without a lane (S28). Beside the
   * layers if there are any; a layer cannot have its own.
   */
  readonly lanes?: Readonly<Record<string, number>> | undefined;
}

/**
 * The limits of one layer: a set of limits, or only a list of windows, as in `['100/1m', '5000/1d']`. A list counts all
 * requests of an account together, whatever their routes (S34).
 */
export type LayerInput = LimitInput | LimitSet;

/**
 * Each limit comes from the most specific layer that sets it: account, then provider, then plan, then default.
 * `LayeredLimits<LayerInput>` may contain lists.
 */
export interface LayeredLimits<Input = LimitSet> {
  /** Limits of every account. With `plans` it is required: it limits requests without a plan. */
  readonly default?: Input | undefined;
  /**
   * Limits per plan of a customer, such as `free` and `pro`. They replace those of `default`. A request whose plan is
   * not listed is an `UnknownPlanError`, so that a misspelt plan cannot lift a limit.
   */
  readonly plans?: Readonly<Record<string, Input>> | undefined;
  /** Limits per provider. They replace those of `plans` and `default`, because they protect the account. */
  readonly providers?: Readonly<Record<string, Input>> | undefined;
  /** Limits per account. They replace all others. */
  readonly accounts?: Readonly<Record<string, Input>> | undefined;
  /**
   * Limits of groups, by their names, such as `{ customer: ['1000/1h'] }`. A request that names a group must fit its
   * limits too (S31). Plans and providers do not change them; `accounts` and adjustments of a `groupAccount()` do.
   */
  readonly groups?: Readonly<Record<string, Input>> | undefined;
  /** See `lanes` of {@link LimitSet}. They apply to the limits of every layer. */
  readonly lanes?: Readonly<Record<string, number>> | undefined;
}

/**
 * A checked All methods limit. Without its own scope, it uses the scope of the less specific layer, so that an
 * adjustment does not change the scope.
 */
interface AllMethods {
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

/** The fields of a layer. */
export const LAYER_NAMES: readonly string[] = ['allMethods', 'routes', 'unlimited', 'groups', 'lanes'];
/** The fields that a layer among others cannot have. */
const BESIDE_NAMES = ['groups', 'lanes'] as const;

/** Without groups and lanes. */
export const NOTHING_BESIDE: BesideLayers = /* @__PURE__ */ Object.freeze({
  groups: undefined,
  lanes: /* @__PURE__ */ new Map(),
});

/** What applies to the limits of every layer. */
interface BesideLayers {
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

/**
 * @param scope of All methods without a scope; undefined if that comes from a less specific layer
 * @param besides what is given beside this layer, and so cannot be in it
 * @throws LimitError, OptionError with the place of the fault, which starts with `place`
 */
export function parseLayer(
  given: LayerInput | undefined,
  place: string,
  scope: AllMethodsScope | undefined,
  besides?: BesideLayers,
): Layer {
  if (Array.isArray(given)) {
    const allMethods: AllMethods = { windows: parseLimit(given, place), scope: 'account' };
    return new Layer({ routes: new Map(), allMethods, isUnlimited: false, ...(besides ?? NOTHING_BESIDE) });
  }
  const set = (given === undefined ? {} : given) as LimitSet;
  const allowed = besides === undefined ? LAYER_NAMES : LAYER_NAMES.filter((name) => isOwnOf(set, name));
  checkOptions(set, allowed, place, (name) => {
    if (name.includes('/')) return 'put it under routes';
    return name === 'windows' || name === 'inFlight' ? 'put it into allMethods' : undefined;
  });
  const { allMethods, routes, unlimited } = set;
  for (const name of BESIDE_NAMES)
    if (besides !== undefined && set[name] !== undefined)
      throw new OptionError(`${place}.${name}`, set[name], NOT_IN_LAYER);
  const inFlight = new Map<string | undefined, number | false>();
  const ownLimits = new Map<string, Limit>();
  readByName(routes, `${place}.routes`, (given: LimitInput | RouteLimitInput, at, route) => {
    const windows = takeInFlight(given, at, route, inFlight);
    if (windows !== undefined) ownLimits.set(route, parseLimit(windows, Array.isArray(given) ? at : `${at}.windows`));
  });
  const layer = new Layer({
    routes: ownLimits,
    allMethods:
      allMethods === undefined ? undefined : parseAllMethods(allMethods, `${place}.allMethods`, scope, inFlight),
    inFlight: inFlight.size === 0 ? undefined : inFlight,
    isUnlimited: unlimited === true,
    ...(besides ?? parseBeside(set, place)),
  });
  if (unlimited !== undefined && unlimited !== true)
    throw new OptionError(`${place}.unlimited`, unlimited, 'must be true, or absent');
  if (layer.isUnlimited && layer.hasWindows)
    throw new OptionError(`${place}.unlimited`, unlimited, 'must not be given beside windows');
  if (layer.isUnlimited && layer.boundsInFlight)
    throw new OptionError(`${place}.unlimited`, unlimited, 'must not be given beside inFlight');
  return layer;
}

/**
 * Limits of groups and lanes, which are beside the layers, or in the only one.
 * @throws LimitError, OptionError with the place of the fault
 */
export function parseBeside({ groups, lanes }: LayeredLimits<LayerInput>, place: string): BesideLayers {
  return { groups: parseGroups(groups, `${place}.groups`), lanes: parseLanes(lanes, `${place}.lanes`) };
}

/**
 * The limits of groups, by their names.
 * @throws LimitError, OptionError with the place of the fault
 */
function parseGroups(
  given: Readonly<Record<string, LayerInput>> | undefined,
  place: string,
): ReadonlyMap<string, Layer> | undefined {
  if (given === undefined) return undefined;
  const groups = readByName(given, place, (set: LayerInput, at) => {
    const layer = parseLayer(set, at, 'route', NOTHING_BESIDE);
    checkLimited([layer], set, at);
    return layer;
  });
  for (const name of groups.keys()) checkGroupName(name, place);
  return groups;
}

/**
 * Checks the limit that a route is declared with.
 * @throws LimitError, also without a window: that would look like a limit, and limit nothing
 */
export function parseRouteLimits(input: LimitInput, place = 'limits'): Limit {
  const limit = parseLimit(input, place);
  if (limit.length === 0)
    throw new LimitError(place, input, 'must have a window; leave it out if the route has no limit of its own');
  return limit;
}

/**
 * The layer of one route that is declared with its limit, whatever the route's name. The least specific layer.
 * @throws LimitError
 */
export function layerOfRoute(limits: LimitInput): LimitLayer & Pick<Layer, 'longestMs'> {
  const limit = parseRouteLimits(limits);
  return { allMethods: undefined, routes: [], routeLimit: () => limit, longestMs: longestOf([limit]) };
}

/** Windows of a limit are in the order of their durations. */
function longestOf(limits: readonly Limit[]): number {
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
    return getOrCreate(others, `${scope} ${inFlight?.route} ${inFlight?.allMethods}`, () =>
      createWindowSet(routeLimit, allMethods, scope, 'last', undefined, inFlight),
    );
  }
}

/** Undefined without windows: then they come from a less specific layer. */
function parseAllMethods(
  input: LimitInput | ScopedLimitInput,
  place: string,
  inherited: AllMethodsScope | undefined,
  inFlight: Map<string | undefined, number | false>,
): AllMethods | undefined {
  const windows = takeInFlight(input, place, undefined, inFlight, ['scope']);
  if (Array.isArray(input)) return { windows: parseLimit(input, place), scope: inherited };
  const { scope = inherited } = input as ScopedLimitInput;
  if (scope !== inherited && scope !== 'route' && scope !== 'account')
    throw new OptionError(`${place}.scope`, scope, "must be 'route' or 'account'");
  if (windows !== undefined) return { windows: parseLimit(windows, `${place}.windows`), scope };
  if ('scope' in input)
    throw new OptionError(`${place}.scope`, scope, 'needs windows: inFlight always counts all routes');
  return undefined;
}

/**
 * Notes `inFlight` of a limit. Returns its windows.
 * @param further names that the limit may have
 * @throws OptionError
 */
function takeInFlight(
  input: LimitInput | RouteLimitInput,
  place: string,
  route: string | undefined,
  inFlight: Map<string | undefined, number | false>,
  further: readonly string[] = [],
): LimitInput | undefined {
  if (Array.isArray(input)) return input;
  const names = ['windows', ...further, 'inFlight'];
  if (!isPlainObject(input)) {
    if (route !== undefined) parseLimit(input, place);
    throw new OptionError(place, input, `must be an array of windows, or { ${names.join(', ')} }`);
  }
  checkOptions(input, names, place);
  const { windows, inFlight: most } = input as RouteLimitInput;
  if (most !== undefined) inFlight.set(route, checkInFlight(most, `${place}.inFlight`));
  // Without both, it would be read as a limit, and limit nothing.
  else if (windows === undefined) parseLimit(windows as never, `${place}.windows`);
  return windows;
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

/** Whether a layer among others may have the field, or has it by mistake, which has an error of its own. */
function isOwnOf(set: LimitSet, name: string): boolean {
  return !(BESIDE_NAMES as readonly string[]).includes(name) || Object.hasOwn(Object(set), name);
}

const NOT_IN_LAYER = 'must be beside default, plans, providers and accounts: it is the same for every layer';
const NO_WINDOWS =
  "must have a window, such as ['60/1m'] or { allMethods: ['60/1m'] }, or inFlight; { unlimited: true } says that requests are not limited";

/**
 * Refuses limits that limit nothing, unless they say so: a forgotten or misplaced limit looks the same.
 * @throws OptionError
 */
export function checkLimited(layers: readonly Layer[], given: unknown, place: string): void {
  if (!layers.some((layer) => layer.hasWindows || layer.boundsInFlight || layer.isUnlimited))
    throw new OptionError(place, given, NO_WINDOWS);
}

/** The limit of a layer that a target names. */
export function limitOf(layer: Layer | undefined, { route }: AdjustTarget): Limit | undefined {
  return route === undefined ? layer?.allMethods?.windows : layer?.routeLimit(route);
}
