import { OptionError } from '../core/errors.ts';
import { type LimitInput, parseLimit } from '../core/limit.ts';
import { checkOptions, isPlainObject, placeIn, readByName } from '../core/options.ts';
import type { Plan } from '../core/plan.ts';
import { Layer, type LayeredLimits, type LimitSet, planOf } from './layers.ts';

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

const LAYERS = ['default', 'providers', 'accounts'];

/** Gives each subject its plan, and keeps plans, since stores know them by identity. */
export class Plans {
  readonly #default: Layer | ((subject: Subject) => Layer);
  readonly #providers: Map<string, Layer> = new Map();
  /** Undefined while there is none, so that most subjects need not be looked up. */
  #accounts: Map<string, Layer> | undefined;
  /** Of the default layer, where it is one; else of those that the function has returned. Emptied by every adjustment. */
  #everybodys: PlanCache | undefined;
  #kept = new WeakMap<Layer, PlanCache>();

  /** @throws LimitError, OptionError naming the place */
  constructor(limits: Limits, place = 'limits') {
    if (typeof limits === 'function') {
      this.#default = layerOfFunction(limits);
      return;
    }
    if (!isPlainObject(limits)) throw new OptionError(place, limits, 'must be an object or a function of the subject');
    if (LAYERS.some((name) => name in limits)) {
      checkOptions(limits, LAYERS, place);
      const { default: everybody, providers, accounts } = limits as LayeredLimits;
      this.#default = new Layer(everybody, `${place}.default`);
      this.#providers = readByName(providers, `${place}.providers`, layerOf);
      if (accounts !== undefined) this.#accounts = readByName(accounts, `${place}.accounts`, layerOf);
    } else this.#default = new Layer(limits as LimitSet, place);
    this.#everybodys = new PlanCache([this.#default]);
  }

  of(subject: Subject): Plan {
    const { account, route, provider } = subject;
    let cache = this.#everybodys ?? this.#cacheOf(subject);
    if (provider !== undefined) cache = cache.under(this.#providers.get(provider));
    if (this.#accounts !== undefined) cache = cache.under(this.#accounts.get(account));
    return cache.of(route);
  }

  /** @throws LimitError, OptionError */
  adjust(target: AdjustTarget, windows: LimitInput | 'recommended'): void {
    checkOptions(target, ['account', 'provider', 'route'], 'target');
    const limit = windows === 'recommended' ? undefined : parseLimit(windows, placeOf(target));
    const layer = this.#layerOf(target);
    if (target.route === undefined) layer.adjustAllMethods(limit);
    else layer.adjustRoute(target.route, limit);
    if (typeof this.#default === 'function') this.#kept = new WeakMap();
    else this.#everybodys = new PlanCache([this.#default]);
  }

  #layerOf({ account, provider }: AdjustTarget): Layer {
    if (account !== undefined && provider !== undefined) {
      throw new OptionError('target', 'account and provider', 'one layer at a time: give one of the two');
    }
    if (account !== undefined) {
      this.#accounts ??= new Map();
      return obtain(this.#accounts, account, () => new Layer());
    }
    if (provider !== undefined) return obtain(this.#providers, provider, () => new Layer());
    if (typeof this.#default === 'function') {
      throw new OptionError(
        'target',
        'the default layer',
        'is a function here: change what it returns, or adjust an account or a provider',
      );
    }
    return this.#default;
  }

  #cacheOf(subject: Subject): PlanCache {
    const layer = (this.#default as (subject: Subject) => Layer)(subject);
    return obtain(this.#kept, layer, () => new PlanCache([layer]));
  }
}

/** Plans of one combination of layers. Routes without a limit of their own share one plan, so that unheard-of routes cost nothing. */
class PlanCache {
  /** The most specific first. */
  readonly #layers: readonly Layer[];
  readonly #byRoute = new Map<string, Plan>();
  readonly #under = new WeakMap<Layer, PlanCache>();
  #ofOtherRoutes: Plan | undefined;

  constructor(layers: readonly Layer[]) {
    this.#layers = layers;
  }

  /** Plans of these layers with a more specific one over them, where there is one. */
  under(layer: Layer | undefined): PlanCache {
    if (layer === undefined) return this;
    return obtain(this.#under, layer, () => new PlanCache([layer, ...this.#layers]));
  }

  of(route: string): Plan {
    return this.#byRoute.get(route) ?? this.#ofOtherRoutes ?? this.#fill(route);
  }

  /** Before it nothing is known, not even which routes have limits of their own. */
  #fill(route: string): Plan {
    const layers = this.#layers;
    for (const layer of layers) for (const own of layer.routes) this.#byRoute.set(own, planOf(layers, own));
    // No layer's routes can hold a symbol: this is the plan of every route that none of them names.
    this.#ofOtherRoutes = planOf(layers, UNNAMED);
    return this.of(route);
  }
}

const UNNAMED = Symbol('any other route') as unknown as string;

const layerOf = (set: LimitSet, place: string) => new Layer(set, place);

function layerOfFunction(limits: (subject: Subject) => LimitSet): (subject: Subject) => Layer {
  const layers = new WeakMap<LimitSet, Layer>();
  return (subject) => {
    const set = limits(subject);
    return obtain(layers, set, () => {
      // Nothing would make a layer without limits.
      if (set === undefined)
        throw new OptionError('limits(subject)', set, 'must return an object with allMethods, routes, or both');
      return new Layer(set, 'limits(subject)');
    });
  };
}

function obtain<K extends WeakKey | string, V>(
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

function placeOf({ account, provider, route }: AdjustTarget): string {
  const layer =
    account !== undefined
      ? placeIn('accounts', account)
      : provider !== undefined
        ? placeIn('providers', provider)
        : 'default';
  return `limits.${layer}.${route === undefined ? 'allMethods' : placeIn('routes', route)}`;
}
