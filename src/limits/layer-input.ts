import { LimitError, OptionError } from '../base/errors.ts';
import { checkOptions, isPlainObject, readByName } from '../base/options.ts';
import { type Limit, type LimitInput, parseLimit } from '../core/limit.ts';
import type { AllMethodsScope } from '../core/window-set.ts';
import { checkGroupName } from './groups.ts';
import { checkInFlight, type InFlightInput } from './in-flight.ts';
import { parseLanes } from './lanes.ts';
import { type AllMethods, type BesideLayers, Layer, type LimitLayer, longestOf, NOTHING_BESIDE } from './layers.ts';

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

/** The fields of a layer. */
export const LAYER_NAMES: readonly string[] = ['allMethods', 'routes', 'unlimited', 'groups', 'lanes'];
/** The fields that a layer among others cannot have. */
const BESIDE_NAMES = ['groups', 'lanes'] as const;

/** Whether an error about an unknown field may offer this one. `groups` and `lanes` by mistake get another error. */
function isOwnOf(set: LimitSet, name: string): boolean {
  return !(BESIDE_NAMES as readonly string[]).includes(name) || Object.hasOwn(Object(set), name);
}

const NOT_IN_LAYER = 'must be beside default, plans, providers and accounts: it is the same for every layer';
const NO_WINDOWS =
  "must have a window, such as ['60/1m'] or { allMethods: ['60/1m'] }, or inFlight; { unlimited: true } says that requests are not limited";

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

/**
 * Refuses limits that limit nothing, unless they say so: a forgotten or misplaced limit looks the same.
 * @throws OptionError
 */
export function checkLimited(layers: readonly Layer[], given: unknown, place: string): void {
  if (!layers.some((layer) => layer.hasWindows || layer.boundsInFlight || layer.isUnlimited))
    throw new OptionError(place, given, NO_WINDOWS);
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
