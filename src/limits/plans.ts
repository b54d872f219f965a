import { OptionError } from '../core/errors.ts';
import { type LimitInput, parseLimit } from '../core/limit.ts';
import { isPromise } from '../core/maybe-promise.ts';
import { checkOptions, isPlainObject, placeIn, readByName } from '../core/options.ts';
import type { Plan } from '../core/plan.ts';
import { createLayeredPlan, Layer, type LayeredLimits, type LimitSet } from './layers.ts';

/** The account and operation that a request is limited by. */
export interface Subject {
  /** Whose allowance the request uses. Any string. */
  readonly account: string;
  /** The operation; by convention `POST /api/v1/emails`, never the raw URL. Any string. */
  readonly route: string;
  /** Selects the limits of a provider. By default, no provider's limits apply. */
  readonly provider?: string | undefined;
}

/** Limits for every account, limits in layers, or a function that returns the limits of a subject. */
export type Limits = LimitSet | LayeredLimits | ((subject: Subject) => LimitSet);

/**
 * Which limit to adjust: that of an account, of a provider, or (if neither is given) the default one. With `route`, the
 * limit of that route; otherwise the limit for all routes.
 */
export interface AdjustTarget {
  readonly account?: string | undefined;
  readonly provider?: string | undefined;
  readonly route?: string | undefined;
}

const LAYERS = ['default', 'providers', 'accounts'];

/** Returns the plan of each subject. Caches plans, because stores cache by the identity of a plan. */
export class Plans {
  readonly #default: Layer | ((subject: Subject) => Layer);
  readonly #providers: Map<string, Layer> = new Map();
  /** Undefined until an account has its own limits, which saves a look-up per request. */
  #accounts: Map<string, Layer> | undefined;
  /** The plans of the default layer. Undefined if `limits` is a function. Replaced at every adjustment. */
  #defaultPlans: PlanCache | undefined;
  /** The plans of each layer that the function has returned. Replaced at every adjustment. */
  #plansByLayer = new WeakMap<Layer, PlanCache>();
  /** Called if a subject names a provider that has no layer, although others have one. */
  onUnknownProvider: ((provider: string) => void) | undefined;

  /** @throws LimitError, OptionError with the place of the fault */
  constructor(limits: Limits, place = 'limits') {
    if (typeof limits === 'function') {
      this.#default = cachedLayers(limits);
      return;
    }
    if (!isPlainObject(limits)) throw new OptionError(place, limits, 'must be an object or a function of the subject');
    if (LAYERS.some((name) => name in limits)) {
      checkOptions(limits, LAYERS, place);
      const { default: defaults, providers, accounts } = limits as LayeredLimits;
      this.#default = new Layer(defaults, `${place}.default`);
      this.#providers = readByName(providers, `${place}.providers`, createLayer);
      if (accounts !== undefined) this.#accounts = readByName(accounts, `${place}.accounts`, createLayer);
    } else this.#default = new Layer(limits as LimitSet, place);
    this.#defaultPlans = new PlanCache([this.#default]);
  }

  /** Routes that have limits of their own by default or for a provider. Empty if `limits` is a function. */
  get limitedRoutes(): readonly string[] {
    const layers = [this.#default, ...this.#providers.values()];
    return [...new Set(layers.flatMap((layer) => (typeof layer === 'function' ? [] : [...layer.routes])))];
  }

  planFor(subject: Subject): Plan {
    const { account, route, provider } = subject;
    let plans = this.#defaultPlans ?? this.#plansOfFunction(subject);
    if (provider !== undefined) plans = plans.withLayer(this.#providerLayer(provider));
    if (this.#accounts !== undefined) plans = plans.withLayer(this.#accounts.get(account));
    return plans.planFor(route);
  }

  /** @throws LimitError, OptionError */
  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void {
    checkOptions(target, ['account', 'provider', 'route'], 'target');
    const limit = windows === 'recommended' ? undefined : parseLimit(windows, placeOfTarget(target));
    const layer = this.#layerFor(target);
    if (target.route === undefined) layer.adjustAllMethods(limit);
    else layer.adjustRoute(target.route, limit);
    if (typeof this.#default === 'function') this.#plansByLayer = new WeakMap();
    else this.#defaultPlans = new PlanCache([this.#default]);
  }

  #layerFor({ account, provider }: AdjustTarget): Layer {
    if (account !== undefined && provider !== undefined) {
      throw new OptionError('target', 'account and provider', 'must name an account or a provider, not both');
    }
    if (account !== undefined) {
      this.#accounts ??= new Map();
      return getOrCreate(this.#accounts, account, () => new Layer());
    }
    if (provider !== undefined) return getOrCreate(this.#providers, provider, () => new Layer());
    if (typeof this.#default === 'function') {
      const reason = 'must name an account or a provider; limits is a function, so change what it returns instead';
      throw new OptionError('target', 'neither', reason);
    }
    return this.#default;
  }

  #providerLayer(provider: string): Layer | undefined {
    const layer = this.#providers.get(provider);
    if (layer === undefined && this.#providers.size > 0) this.onUnknownProvider?.(provider);
    return layer;
  }

  #plansOfFunction(subject: Subject): PlanCache {
    const layer = (this.#default as (subject: Subject) => Layer)(subject);
    return getOrCreate(this.#plansByLayer, layer, () => new PlanCache([layer]));
  }
}

/** The plans of one combination of layers. Routes without their own limit share one, so unknown routes cost nothing. */
class PlanCache {
  readonly #byRoute = new Map<string, Plan>();
  readonly #withLayer = new WeakMap<Layer, PlanCache>();
  #planOfOtherRoutes: Plan | undefined;

  /** @param layers the most specific first */
  constructor(private readonly layers: readonly Layer[]) {}

  /** The plans of these layers and one more specific layer, if it is given. */
  withLayer(layer: Layer | undefined): PlanCache {
    if (layer === undefined) return this;
    return getOrCreate(this.#withLayer, layer, () => new PlanCache([layer, ...this.layers]));
  }

  planFor(route: string): Plan {
    return this.#byRoute.get(route) ?? this.#planOfOtherRoutes ?? this.#fill(route);
  }

  /** On first use, creates all plans: that of each route with its own limit, and that of all other routes. */
  #fill(route: string): Plan {
    const { layers } = this;
    for (const layer of layers) for (const own of layer.routes) this.#byRoute.set(own, createLayeredPlan(layers, own));
    // No layer has a limit for a symbol, so this is the plan of every route that no layer names.
    this.#planOfOtherRoutes = createLayeredPlan(layers, OTHER_ROUTE);
    return this.planFor(route);
  }
}

const NOT_ASYNCHRONOUS =
  'must return the limits, not a promise of them: load them beforehand, and change them with limiter.adjust()';
const OTHER_ROUTE = Symbol('any other route') as unknown as string;

const createLayer = (set: LimitSet, place: string) => new Layer(set, place);

/** Limit sets are checked once each, since a function usually returns the same few objects. */
function cachedLayers(limits: (subject: Subject) => LimitSet): (subject: Subject) => Layer {
  const layers = new WeakMap<LimitSet, Layer>();
  return (subject) => {
    const set = limits(subject);
    return getOrCreate(layers, set, () => {
      if (isPromise(set)) throw new OptionError('limits(subject)', set, NOT_ASYNCHRONOUS, 'a promise');
      // Undefined would create a layer without limits.
      if (set === undefined)
        throw new OptionError('limits(subject)', set, 'must return a plain object (expected allMethods or routes)');
      return new Layer(set, 'limits(subject)');
    });
  };
}

function getOrCreate<K extends WeakKey | string, V>(
  values: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  make: () => V,
): V {
  let value = values.get(key);
  if (value === undefined) {
    value = make();
    values.set(key, value);
  }
  return value;
}

function placeOfTarget({ account, provider, route }: AdjustTarget): string {
  const layer =
    account !== undefined
      ? placeIn('accounts', account)
      : provider !== undefined
        ? placeIn('providers', provider)
        : 'default';
  return `limits.${layer}.${route === undefined ? 'allMethods' : placeIn('routes', route)}`;
}
