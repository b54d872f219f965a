import { OptionError } from './core/errors.ts';
import { type LimitInput, parseLimit } from './core/limit.ts';
import { checkOptions, isPlainObject } from './core/options.ts';
import type { Plan } from './core/plan.ts';
import { Layer, type LayeredLimits, type LimitSet, planOf } from './limits.ts';

/** What a request is limited by. */
export interface Subject {
  /** Whose allowance is spent. Opaque, any string. */
  readonly account: string;
  /** One operation of the API; by convention `POST /api/v1/emails`, never the raw URL. Opaque, any string. */
  readonly route: string;
  /** Selects the limits of a provider. */
  readonly provider?: string | undefined;
}

/** Limits for everybody, limits in layers, or a function that finds a subject's own. */
export type Limits = LimitSet | LayeredLimits | ((subject: Subject) => LimitSet);

/** Which limit to adjust: in the layer of an account, of a provider, or (neither) the default; with `route` its own, else All methods. */
export interface AdjustTarget {
  readonly account?: string | undefined;
  readonly provider?: string | undefined;
  readonly route?: string | undefined;
}

/** Gives each subject its plan, and keeps plans, since stores know them by identity. */
export class Plans {
  readonly #default: Layer | ((subject: Subject) => Layer);
  readonly #providers = new Map<string, Layer>();
  readonly #accounts = new Map<string, Layer>();
  /** By account layer, provider layer and default layer; then by route. Emptied by every adjustment. */
  #kept = new WeakMap<Layer, PlanCache>();
  /** The default layer is one object for most: a comparison instead of a look-up. */
  #lastDefault: Layer | undefined;
  #lastCache: PlanCache | undefined;

  /** @throws LimitError, OptionError naming the place */
  constructor(limits: Limits, place = 'limits') {
    if (typeof limits === 'function') {
      this.#default = layerOfFunction(limits);
      return;
    }
    if (!isPlainObject(limits)) throw new OptionError(place, limits, 'must be an object or a function of the subject');
    if (!('default' in limits || 'providers' in limits || 'accounts' in limits)) {
      this.#default = new Layer(limits as LimitSet, place);
      return;
    }
    checkOptions(limits, ['default', 'providers', 'accounts'], place);
    const { default: everybody, providers, accounts } = limits as LayeredLimits;
    this.#default = new Layer(everybody, `${place}.default`);
    readLayers(providers, `${place}.providers`, this.#providers);
    readLayers(accounts, `${place}.accounts`, this.#accounts);
  }

  of(subject: Subject): Plan {
    const byDefault = typeof this.#default === 'function' ? this.#default(subject) : this.#default;
    const account = this.#accounts.size === 0 ? undefined : this.#accounts.get(subject.account);
    const provider = subject.provider === undefined ? undefined : this.#providers.get(subject.provider);
    let cache = byDefault === this.#lastDefault ? (this.#lastCache as PlanCache) : this.#cacheOf(byDefault);
    if (provider !== undefined) cache = cache.under(provider);
    if (account !== undefined) cache = cache.under(account);
    return cache.plan(subject.route) ?? cache.keep(layersOf(account, provider, byDefault), subject.route);
  }

  /** @throws LimitError, OptionError */
  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void {
    checkOptions(target, ['account', 'provider', 'route'], 'target');
    const limit = windows === 'recommended' ? undefined : parseLimit(windows, placeOf(target));
    const layer = this.#layerOf(target);
    if (target.route === undefined) layer.adjustAllMethods(limit);
    else layer.adjustRoute(target.route, limit);
    this.#kept = new WeakMap();
    this.#lastDefault = undefined;
  }

  #layerOf({ account, provider }: AdjustTarget): Layer {
    if (account !== undefined && provider !== undefined) {
      throw new OptionError('target', 'account and provider', 'one layer at a time: give one of the two');
    }
    if (account !== undefined) return obtain(this.#accounts, account);
    if (provider !== undefined) return obtain(this.#providers, provider);
    if (typeof this.#default === 'function') {
      throw new OptionError(
        'target',
        'the default layer',
        'is a function here: change what it returns, or adjust an account or a provider',
      );
    }
    return this.#default;
  }

  #cacheOf(layer: Layer): PlanCache {
    let cache = this.#kept.get(layer);
    if (cache === undefined) {
      cache = new PlanCache();
      this.#kept.set(layer, cache);
    }
    this.#lastDefault = layer;
    this.#lastCache = cache;
    return cache;
  }
}

/** Plans of one combination of layers. Routes without a limit of their own share one plan, so that unheard-of routes cost nothing. */
class PlanCache {
  readonly #byRoute = new Map<string, Plan>();
  readonly #under = new WeakMap<Layer, PlanCache>();
  #ofOtherRoutes: Plan | undefined;

  under(layer: Layer): PlanCache {
    let cache = this.#under.get(layer);
    if (cache === undefined) {
      cache = new PlanCache();
      this.#under.set(layer, cache);
    }
    return cache;
  }

  plan(route: string): Plan | undefined {
    // Before the first `keep` nothing is known, not even which routes have limits of their own.
    return this.#ofOtherRoutes === undefined ? undefined : (this.#byRoute.get(route) ?? this.#ofOtherRoutes);
  }

  keep(layers: readonly Layer[], route: string): Plan {
    for (const layer of layers) for (const own of layer.routes) this.#byRoute.set(own, planOf(layers, own));
    // No layer's routes can hold a symbol: this is the plan of every route that none of them names.
    this.#ofOtherRoutes = planOf(layers, UNNAMED);
    return this.plan(route) as Plan;
  }
}

const UNNAMED = Symbol('any other route') as unknown as string;

function layersOf(...layers: (Layer | undefined)[]): Layer[] {
  return layers.filter((layer) => layer !== undefined);
}

function layerOfFunction(limits: (subject: Subject) => LimitSet): (subject: Subject) => Layer {
  const layers = new WeakMap<LimitSet, Layer>();
  return (subject) => {
    const set = limits(subject);
    if (!isPlainObject(set))
      throw new OptionError('limits(subject)', set, 'must return an object with allMethods, routes or both');
    let layer = layers.get(set);
    if (layer === undefined) {
      layer = new Layer(set, 'limits(subject)');
      layers.set(set, layer);
    }
    return layer;
  };
}

function readLayers(
  sets: Readonly<Record<string, LimitSet>> | undefined,
  place: string,
  into: Map<string, Layer>,
): void {
  if (sets === undefined) return;
  if (!isPlainObject(sets)) throw new OptionError(place, sets, 'must be an object of limits by name');
  for (const [name, set] of Object.entries(sets)) into.set(name, new Layer(set, `${place}[${JSON.stringify(name)}]`));
}

function obtain(layers: Map<string, Layer>, name: string): Layer {
  let layer = layers.get(name);
  if (layer === undefined) {
    layer = new Layer();
    layers.set(name, layer);
  }
  return layer;
}

function placeOf({ account, provider, route }: AdjustTarget): string {
  const layer =
    account !== undefined ? `accounts["${account}"]` : provider !== undefined ? `providers["${provider}"]` : 'default';
  return `limits.${layer}.${route === undefined ? 'allMethods' : `routes["${route}"]`}`;
}
