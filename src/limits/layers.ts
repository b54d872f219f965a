import { OptionError } from '../core/errors.ts';
import { type Limit, type LimitInput, parseLimit } from '../core/limit.ts';
import { checkOptions, isPlainObject, readByName } from '../core/options.ts';
import { type AllMethodsScope, createPlan, type Plan } from '../core/plan.ts';

/** All methods, with where it counts. */
export interface ScopedLimitInput {
  /** The limit itself, as in `['60/1m', '5000/1d']`. */
  readonly windows: LimitInput;
  /**
   * `route`: each route has a count of its own against it (S1). `account`: one count shared by the account's routes.
   * @default 'route'
   */
  readonly scope?: AllMethodsScope;
}

/** The limits of one layer. What is absent is left to the layer below; `[]` says "no such limit here". */
export interface LimitSet {
  /** Applies to every route alike. */
  readonly allMethods?: LimitInput | ScopedLimitInput | undefined;
  /** Additional limits by route, as in `{ 'POST /api/v1/emails': ['10/1m', '200/1d'] }`. */
  readonly routes?: Readonly<Record<string, LimitInput>> | undefined;
}

/** Limits in layers: for each limit by name the most specific layer that has it wins: account, then provider, then default. */
export interface LayeredLimits {
  /** Limits of everybody. */
  readonly default?: LimitSet | undefined;
  /** Over `default`, by the subject's provider. */
  readonly providers?: Readonly<Record<string, LimitSet>> | undefined;
  /** Over both, by the subject's account. */
  readonly accounts?: Readonly<Record<string, LimitSet>> | undefined;
}

/** A checked limit of All methods. Without a scope of its own it counts where the layer below does: what adjusts a limit does not move it. */
interface AllMethods {
  readonly windows: Limit;
  readonly scope: AllMethodsScope | undefined;
}

/**
 * The limits of one layer, checked.
 * Mutable through {@link adjustAllMethods} and {@link adjustRoute}; what it was made of stays, to go back to.
 */
export class Layer {
  readonly #initial: { readonly allMethods: AllMethods | undefined; readonly routes: ReadonlyMap<string, Limit> };
  #allMethods: AllMethods | undefined;
  readonly #routes: Map<string, Limit>;

  /** @throws LimitError, OptionError naming the place under `place` */
  constructor(set: LimitSet = {}, place = 'limits') {
    checkOptions(set, ['allMethods', 'routes'], place);
    const { allMethods, routes } = set;
    this.#routes = readByName(routes, `${place}.routes`, parseLimit);
    this.#allMethods = allMethods === undefined ? undefined : parseAllMethods(allMethods, `${place}.allMethods`);
    this.#initial = { allMethods: this.#allMethods, routes: new Map(this.#routes) };
  }

  get allMethods(): AllMethods | undefined {
    return this.#allMethods;
  }

  route(route: string): Limit | undefined {
    return this.#routes.get(route);
  }

  /** Routes that have a limit of their own here. */
  get routes(): Iterable<string> {
    return this.#routes.keys();
  }

  /** A new limit, or undefined for what the layer was made with (S10). The scope stays. */
  adjustAllMethods(windows: Limit | undefined): void {
    const { allMethods } = this.#initial;
    this.#allMethods = windows === undefined ? allMethods : { windows, scope: allMethods?.scope };
  }

  adjustRoute(route: string, limit: Limit | undefined): void {
    const next = limit ?? this.#initial.routes.get(route);
    if (next === undefined) this.#routes.delete(route);
    else this.#routes.set(route, next);
  }
}

/** The plan of a route from its layers, the most specific first. */
export function planOf(layers: readonly Layer[], route: string): Plan {
  const routeLimit = firstDefined(layers, (layer) => layer.route(route));
  const allMethods = firstDefined(layers, (layer) => layer.allMethods);
  const scope = firstDefined(layers, (layer) => layer.allMethods?.scope);
  return createPlan(routeLimit ?? [], allMethods?.windows ?? [], scope);
}

function parseAllMethods(input: LimitInput | ScopedLimitInput, place: string): AllMethods {
  if (Array.isArray(input)) return { windows: parseLimit(input, place), scope: 'route' };
  if (!isPlainObject(input)) throw new OptionError(place, input, 'must be an array of windows, or { windows, scope }');
  checkOptions(input, ['windows', 'scope'], place);
  const { windows, scope = 'route' } = input as unknown as ScopedLimitInput;
  if (scope !== 'route' && scope !== 'account')
    throw new OptionError(`${place}.scope`, scope, "must be 'route' or 'account'");
  return { windows: parseLimit(windows, `${place}.windows`), scope };
}

function firstDefined<T>(layers: readonly Layer[], read: (layer: Layer) => T | undefined): T | undefined {
  for (const layer of layers) {
    const value = read(layer);
    if (value !== undefined) return value;
  }
  return undefined;
}
