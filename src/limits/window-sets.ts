import { LimitError, OptionError, UnknownPlanError } from '../base/errors.ts';
import { getOrCreate } from '../base/get-or-create.ts';
import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { checkOptions, isPlainObject, readByName } from '../base/options.ts';
import { type AdjustTarget, layerOf, placeOfTarget, type TargetLayer } from '../core/adjustment.ts';
import { type Limit, type LimitInput, parseLimit } from '../core/limit.ts';
import { isUnit, REQUESTS } from '../core/unit.ts';
import type { WindowSet } from '../core/window-set.ts';
import { groupOf, unknownGroup } from './groups.ts';
import { type Lanes, windowSetInLane } from './lanes.ts';
import {
  checkLimited,
  LAYER_NAMES,
  type LayeredLimits,
  type LayerInput,
  layerOfRoute,
  parseBeside,
  parseLayer,
} from './layer-input.ts';
import { type Layer, type LayerChange, NO_LAYER, NOTHING_BESIDE, WindowSetFactory } from './layers.ts';
import { hiddenChanges, type LimitsBeneath } from './limits-beneath.ts';
import { compiledLayers } from './limits-function.ts';
import { WindowSetCache } from './window-set-cache.ts';
import {
  LAYER_FIELDS,
  type LayerField,
  type Limits,
  type NamedRoutes,
  type Subject,
  type WindowSetSource,
} from './window-set-source.ts';

const LAYERS = ['default', 'plans', 'providers', 'accounts'];
const LAYERS_AND_BESIDE = [...LAYERS, 'groups', 'lanes'];

/** The window set of a subject from limits, or from a source; a promise if the function `limits` returned one. */
export function resolveWindowSet(source: WindowSetSource, subject: Subject): MaybePromise<WindowSet> {
  return source instanceof WindowSets ? source.resolve(subject) : source.windowSet(subject);
}

/** Returns the window set of each subject. Caches window sets, because stores cache by the identity of a window set. */
export class WindowSets implements WindowSetSource {
  #default: Layer | ((subject: Subject) => MaybePromise<Layer>);
  readonly #customerPlans: Map<string, Layer> = new Map();
  /**
   * Whether a plan that is not in `#customerPlans` is an error: not if `limits` is a function, which knows the plan.
   */
  readonly #listsCustomerPlans: boolean = false;
  readonly #providers: Map<string, Layer> = new Map();
  /** Undefined until an account gets its own limits, which saves a look-up per request. */
  #accounts: Map<string, Layer> | undefined;
  readonly #factory: WindowSetFactory = new WindowSetFactory();
  /** The window sets of the default layer. Undefined if `limits` is a function. */
  #defaultWindowSets: WindowSetCache | undefined;
  /** The window sets of each layer that the function returned. */
  readonly #windowSetsByLayer: WeakMap<Layer, WindowSetCache> = new WeakMap();
  /** The window sets of each limit that a request brought along. */
  readonly #windowSetsByRouteLimits: WeakMap<LimitInput, WindowSetCache> = new WeakMap();
  /**
   * Whether limits depend on the route, or count each route separately. False if `limits` is a function: `windowSet`
   * throws for a subject without the route that its limits need.
   */
  readonly needsRoute: boolean = false;
  readonly layerFields: readonly LayerField[] = [];
  /** The accounts of `limits` that have limits of their own, without adjustments. */
  readonly namedAccounts: readonly string[] = [];
  /** Whether every request should meet a window: not if `limits` is a function, or says that it is unlimited. */
  readonly isLimited: boolean = false;
  /** Whether a limit bounds the requests in flight, as far as that is known. */
  readonly boundsInFlight: boolean = false;
  /** Every limit of every layer, without adjustments. None if `limits` is a function. */
  readonly limits: readonly Limit[] = [];
  /** Names of the groups, of a function those that it returned so far. Undefined without groups, which saves a check. */
  groups: readonly string[] | undefined;
  /** What windows may count beside requests, sorted. Other units are refused, because no request could name them. */
  readonly units: readonly string[] = [];
  /** Of all limits so far: counts of an earlier limit apply again if it comes back. */
  longestMs = 0;
  /** Called if a subject names a provider without a layer, although others are listed. */
  onUnknownProvider: ((provider: string) => void) | undefined;
  /** Called if the function `limits` returns other limits for an account than before, and an adjustment hides them. */
  onHidden: ((target: AdjustTarget) => void) | undefined;
  readonly #beneath: LimitsBeneath = new WeakMap();

  /**
   * @param limits other window sets are copied: equal limits share their window set objects, and each is adjusted
   * alone
   * @param units in addition to those in `limits`
   * @throws LimitError, OptionError with the place of the fault
   */
  constructor(limits: Limits | WindowSets, place = 'limits', units: readonly string[] = []) {
    if (limits instanceof WindowSets) {
      this.#default = limits.#default;
      this.#customerPlans = new Map(limits.#customerPlans);
      this.#listsCustomerPlans = limits.#listsCustomerPlans;
      this.#providers = new Map(limits.#providers);
      this.#accounts = limits.#accounts && new Map(limits.#accounts);
      this.#factory = limits.#factory;
      this.#defaultWindowSets = limits.#defaultWindowSets;
      this.#windowSetsByLayer = limits.#windowSetsByLayer;
      this.#windowSetsByRouteLimits = limits.#windowSetsByRouteLimits;
      this.needsRoute = limits.needsRoute;
      this.layerFields = limits.layerFields;
      this.boundsInFlight = limits.boundsInFlight;
      this.groups = limits.groups;
      this.longestMs = limits.longestMs;
      this.units = limits.units;
      this.onUnknownProvider = limits.onUnknownProvider;
      this.onHidden = limits.onHidden;
      return;
    }
    this.units = sortedUnits(checkUnits(units));
    if (typeof limits === 'function') {
      this.#default = compiledLayers(limits, (layer) => {
        for (const each of [layer, ...(layer.groups?.values() ?? [])])
          for (const limit of each.limits) this.#checkUnits(limit, 'limits(subject)');
        this.#note(layer);
      });
      return;
    }
    if (!isPlainObject(limits) && !Array.isArray(limits)) throw new OptionError(place, limits, NOT_LIMITS);
    if (LAYERS.some((name) => name in limits)) {
      checkOptions(limits, LAYERS_AND_BESIDE, place, (name) =>
        LAYER_NAMES.includes(name) ? 'move it into default' : undefined,
      );
      const { default: defaults, plans, providers, accounts } = limits as LayeredLimits<LayerInput>;
      if (plans !== undefined && defaults === undefined)
        throw new OptionError(`${place}.default`, defaults, NO_DEFAULT);
      this.#default = parseLayer(
        defaults,
        `${place}.default`,
        'route',
        parseBeside(limits as LayeredLimits<LayerInput>, place),
      );
      // Beside plans, such a list would let each request without a plan pass.
      if (Array.isArray(defaults)) checkLimited([this.#default], defaults, `${place}.default`);
      this.#customerPlans = readByName(plans, `${place}.plans`, createLayer);
      this.#providers = readByName(providers, `${place}.providers`, createLayer);
      if (accounts !== undefined) this.#accounts = readByName(accounts, `${place}.accounts`, createLayer);
    } else this.#default = parseLayer(limits as LayerInput, place, 'route');
    const named = [this.#customerPlans, this.#providers, this.#accounts ?? new Map<string, Layer>()];
    const ofAccounts = [this.#default, ...named.flatMap((byName) => [...byName.values()])];
    checkLimited(ofAccounts, limits, place);
    const layers = [...ofAccounts, ...(this.#default.groups?.values() ?? [])];
    const { scope = 'route' } = this.#default.allMethods ?? {};
    this.needsRoute = layers.some((layer) => layer.needsRoute(scope));
    this.layerFields = LAYER_FIELDS.filter((_, i) => named[i]?.size);
    this.namedAccounts = [...(this.#accounts?.keys() ?? [])];
    this.isLimited = !this.#default.isUnlimited;
    this.boundsInFlight = layers.some((layer) => layer.boundsInFlight);
    this.limits = layers.flatMap((layer) => layer.limits);
    this.units = sortedUnits([...units, ...this.limits.flat().flatMap(({ unit = [] }) => unit)]);
    for (const layer of layers) this.#note(layer);
    this.#defaultWindowSets = this.#cacheOf(this.#default);
    this.#listsCustomerPlans = true;
  }

  /** Routes with their own limits by default, for a plan or for a provider. Empty if `limits` is a function. */
  get limitedRoutes(): readonly string[] {
    const groups = typeof this.#default === 'function' ? [] : (this.#default.groups?.values() ?? []);
    const layers = [this.#default, ...this.#customerPlans.values(), ...this.#providers.values(), ...groups];
    return [...new Set(layers.flatMap((layer) => (typeof layer === 'function' ? [] : [...layer.routes])))];
  }

  /** The names of the lanes; undefined if `limits` is a function. */
  get lanes(): readonly string[] | undefined {
    return this.mayWait ? undefined : [...this.shares.keys()];
  }

  /** The same lanes, with their shares. */
  get shares(): Lanes {
    return typeof this.#default === 'function' ? NOTHING_BESIDE.lanes : this.#default.lanes;
  }

  /** Whether `limits` is a function, which may return a promise. */
  get mayWait(): boolean {
    return typeof this.#default === 'function';
  }

  /**
   * @throws SubjectError if the limits of a subject without a route need it; UnknownPlanError; UnknownLaneError;
   * OptionError if the function `limits` returned a promise
   */
  windowSet(subject: Subject): WindowSet {
    return this.#windowSetOver(this.defaultLayer(subject), subject);
  }

  /** Like `windowSet`, and waits for a promise of the function `limits`. */
  resolve(subject: Subject): MaybePromise<WindowSet> {
    const layer = typeof this.#default === 'function' ? this.#default(subject) : this.#default;
    if (!isPromise(layer)) return this.#windowSetOver(layer, subject);
    // The caller may change its object meanwhile.
    const copy = { ...subject };
    return layer.then((resolved) => this.#windowSetOver(resolved, copy));
  }

  namedRoutes(subject: Subject): MaybePromise<NamedRoutes> {
    const layer = typeof this.#default === 'function' ? this.#default(subject) : this.#default;
    return after(layer, (resolved) => {
      const windowSets = this.#windowSetsOver(resolved, subject);
      return { routes: windowSets.routes, others: inLane(windowSets.windowSetOfOthers, resolved, subject) };
    });
  }

  #windowSetOver(defaults: Layer, subject: Subject): WindowSet {
    return inLane(this.#windowSetsOver(defaults, subject).windowSetFor(subject.route), defaults, subject);
  }

  #windowSetsOver(defaults: Layer, subject: Subject): WindowSetCache {
    const { account, provider, plan, limits } = subject;
    const group = this.groups && this.groupLayer(account, defaults);
    if (group !== undefined) return this.#windowSetsOfGroup(group, subject);
    let windowSets =
      limits === undefined ? this.#windowSetsOfDefault(defaults) : this.#windowSetsOfRouteLimits(limits, defaults);
    if (plan !== undefined) windowSets = windowSets.withLayer(this.#layerOfCustomerPlan(plan));
    if (provider !== undefined) windowSets = windowSets.withLayer(this.#providerLayer(provider));
    return this.#accounts === undefined ? windowSets : this.#withAccount(windowSets, defaults, subject);
  }

  /** Apart, because a closure in the caller would cost each request of an account. */
  #windowSetsOfGroup(group: Layer, subject: Subject): WindowSetCache {
    const windowSets = getOrCreate(this.#windowSetsByLayer, group, () => this.#cacheOf(group));
    return this.#withAccount(windowSets, group, subject);
  }

  /** @param beneath the layer that the account's limits replace */
  #withAccount(windowSets: WindowSetCache, beneath: Layer, subject: Subject): WindowSetCache {
    const own = this.#accounts?.get(subject.account);
    if (own !== undefined && this.mayWait)
      for (const target of hiddenChanges(this.#beneath, own, beneath, subject)) this.onHidden?.(target);
    return windowSets.withLayer(own);
  }

  /** The limits of the group whose account it is; undefined for any other account. */
  groupLayer(account: string, { groups }: Layer): Layer | undefined {
    const name = groupOf(account);
    if (name === undefined || !this.groups?.includes(name)) return undefined;
    const layer = groups?.get(name);
    if (layer === undefined) throw unknownGroup(name, [...(groups?.keys() ?? [])]);
    return layer;
  }

  /** @throws LimitError, OptionError */
  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void {
    const place = placeOfTarget(target);
    const limit = windows === 'recommended' ? undefined : parseLimit(windows, place);
    const fault = this.whyNotAdjustable(target, limit);
    if (fault !== undefined) throw fault;
    this.adjustAll([[target, limit]]);
  }

  /**
   * Sets limits; undefined restores the initial one. Plans whose limits do not change stay the same objects.
   * @param changes of limits that are adjustable
   */
  adjustAll(changes: Iterable<readonly [target: AdjustTarget, limit: Limit | undefined]>): void {
    const byLayer = new Map<string, { readonly of: TargetLayer; readonly changes: LayerChange[] }>();
    for (const [target, limit] of changes) {
      const of = layerOf(target);
      getOrCreate(byLayer, `${of.layer} ${of.name}`, () => ({ of, changes: [] })).changes.push([target.route, limit]);
    }
    for (const { of, changes } of byLayer.values()) this.#replaceLayer(of, (layer) => layer.adjusted(changes));
  }

  /** The error of a limit that cannot be adjusted, or not to these windows; undefined if it can. */
  whyNotAdjustable(target: AdjustTarget, windows: Limit = []): OptionError | LimitError | undefined {
    const { layer } = layerOf(target);
    const unit = this.#unknownUnit(windows);
    if (unit !== undefined) return new LimitError(placeOfTarget(target), unit, UNKNOWN_UNIT);
    if (typeof this.#default === 'function')
      // Only the function itself can change it.
      return layer === 'default' ? new OptionError('target', 'neither', OF_FUNCTION) : undefined;
    // Requests may name no route then, so the limit would not apply to them.
    return target.route === undefined || this.needsRoute
      ? undefined
      : new OptionError('target.route', target.route, OF_LIST);
  }

  /** One layer; undefined if it is without limits, and for the default one if `limits` is a function. */
  layer({ layer, name }: TargetLayer): Layer | undefined {
    if (layer !== 'default') return this.#named(layer)?.get(name);
    return typeof this.#default === 'function' ? undefined : this.#default;
  }

  #named(layer: Exclude<TargetLayer['layer'], 'default'>): Map<string, Layer> | undefined {
    return { account: this.#accounts, provider: this.#providers, plan: this.#customerPlans }[layer];
  }

  #replaceLayer({ layer, name }: TargetLayer, change: (layer: Layer) => Layer): void {
    if (layer !== 'default') {
      if (layer === 'account') this.#accounts ??= new Map();
      this.#note(replaceNamed(this.#named(layer) as Map<string, Layer>, name, change));
    } else {
      this.#default = change(this.#default as Layer);
      this.#note(this.#default);
      this.#defaultWindowSets = this.#cacheOf(this.#default);
    }
  }

  #unknownUnit(limit: Limit): string | undefined {
    return limit.find(({ unit }) => unit !== undefined && !this.units.includes(unit))?.unit;
  }

  /** @throws LimitError */
  #checkUnits(limit: Limit, place: string): void {
    const unit = this.#unknownUnit(limit);
    if (unit !== undefined) throw new LimitError(place, unit, UNKNOWN_UNIT);
  }

  #note({ longestMs, groups }: Pick<Layer, 'longestMs'> & Partial<Pick<Layer, 'groups'>>): void {
    this.longestMs = Math.max(this.longestMs, longestMs);
    if (groups === undefined) return;
    this.groups = [...new Set([...(this.groups ?? []), ...groups.keys()])];
    for (const group of groups.values()) this.#note(group);
  }

  #cacheOf(layer: Layer): WindowSetCache {
    return new WindowSetCache([layer], this.#factory);
  }

  #providerLayer(provider: string): Layer | undefined {
    const layer = this.#providers.get(provider);
    if (layer === undefined && this.#providers.size > 0) this.onUnknownProvider?.(provider);
    return layer;
  }

  #layerOfCustomerPlan(name: string): Layer | undefined {
    const layer = this.#customerPlans.get(name);
    if (layer === undefined && this.#listsCustomerPlans)
      throw new UnknownPlanError(name, [...this.#customerPlans.keys()]);
    return layer;
  }

  #windowSetsOfDefault(layer: Layer): WindowSetCache {
    if (this.#defaultWindowSets !== undefined) return this.#defaultWindowSets;
    return getOrCreate(this.#windowSetsByLayer, layer, () => this.#cacheOf(layer));
  }

  #windowSetsOfRouteLimits(limits: LimitInput, defaults: Layer): WindowSetCache {
    const create = (): WindowSetCache => {
      const layer = layerOfRoute(limits);
      this.#checkUnits(layer.routeLimit('') as Limit, 'limits');
      this.#note(layer);
      return new WindowSetCache([layer], this.#factory);
    };
    const windowSets = getOrCreate(this.#windowSetsByRouteLimits, limits, create);
    return windowSets.withLayer(defaults);
  }

  /**
   * The default layer, which a function can return for each subject.
   * @throws OptionError if it returned a promise
   */
  defaultLayer(subject: Subject): Layer {
    if (typeof this.#default !== 'function') return this.#default;
    const layer = this.#default(subject);
    if (!isPromise(layer)) return layer;
    // If it rejects, an unhandled rejection would end the process.
    layer.catch(() => {});
    throw new OptionError('limits(subject)', layer, NOT_ASYNCHRONOUS, 'a promise');
  }
}

/** @throws OptionError */
function checkUnits(units: unknown): readonly string[] {
  if (Array.isArray(units) && units.every(isUnit) && !units.includes(REQUESTS)) return units;
  throw new OptionError('units', units, NOT_UNITS, JSON.stringify(units)?.slice(0, MAX_SHOWN));
}

function sortedUnits(units: readonly string[]): readonly string[] {
  return [...new Set(units)].sort();
}

const MAX_SHOWN = 100;
const NOT_UNITS = "must be a list of units beside requests, such as ['tokens']";
const UNKNOWN_UNIT = 'the option units must list this unit, because the limits of the start do not count it';
const NOT_ASYNCHRONOUS =
  'must return the limits here, not a promise of them: only consume() and peek() of createLimiter(), gates and workers ' +
  'wait for it';
const NOT_LIMITS = 'must be an object or a function of the subject, or a list of windows';
const OF_FUNCTION = 'must name account, provider or plan; limits is a function, so change what it returns instead';
const OF_LIST =
  'must be absent: limits that are a list count all routes together. ' +
  "Write { allMethods: { windows, scope: 'account' } } in place of the list, and each request with its route";
const NO_DEFAULT = 'must be given with plans: it has the limits of requests without a plan';
const NOT_IN_LAYER = 'only the limits of every account can be unlimited; { allMethods: [] } removes that limit here';
const EMPTY_LAYER =
  'must have a window; {} leaves the limits of the other layers as they are, { allMethods: [] } removes theirs';

function inLane(windowSet: WindowSet, defaults: Layer, { lane }: Subject): WindowSet {
  return lane === undefined ? windowSet : windowSetInLane(windowSet, defaults.lanes, lane);
}

/** Creates the layer of a plan, a provider or an account. */
function createLayer(set: LayerInput, place: string): Layer {
  const layer = parseLayer(set, place, undefined, NOTHING_BESIDE);
  // It would be read as "no limits of its own", but it lifts those of the other layers.
  if (Array.isArray(set) && set.length === 0) throw new OptionError(place, set, EMPTY_LAYER);
  // It would be read as "not limited at all", but the limits that it lacks come from the other layers.
  if (layer.isUnlimited) throw new OptionError(`${place}.unlimited`, true, NOT_IN_LAYER);
  return layer;
}

/** A layer that only adjustments created is deleted with the last of them. */
function replaceNamed(layers: Map<string, Layer>, name: string, change: (layer: Layer) => Layer): Layer {
  const layer = change(layers.get(name) ?? NO_LAYER);
  if (layer === NO_LAYER) layers.delete(name);
  else layers.set(name, layer);
  return layer;
}
