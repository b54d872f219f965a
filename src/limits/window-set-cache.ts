import { SubjectError } from '../base/errors.ts';
import { getOrCreate } from '../base/get-or-create.ts';
import { EVERY_ROUTE, type WindowSet } from '../core/window-set.ts';
import type { Layer, LimitLayer, WindowSetFactory } from './layers.ts';

/** Advice for a request without a route. */
export const ROUTE_NEEDED = 'only limits that are a list of windows do without a route';
const OTHER_ROUTE = Symbol('any other route') as unknown as string;

/**
 * The window sets of one combination of layers. Routes without their own limit share one, so unknown routes cost
 * nothing.
 */
export class WindowSetCache {
  readonly #byRoute = new Map<string, WindowSet>();
  readonly #withLayer = new WeakMap<Layer, WindowSetCache>();
  #windowSetOfOtherRoutes: WindowSet | undefined;

  /** @param layers the most specific first */
  constructor(
    private readonly layers: readonly LimitLayer[],
    private readonly factory: WindowSetFactory,
  ) {}

  /** The window sets of these layers and one more specific layer, if it is given. */
  withLayer(layer: Layer | undefined): WindowSetCache {
    if (layer === undefined) return this;
    return getOrCreate(this.#withLayer, layer, () => new WindowSetCache([layer, ...this.layers], this.factory));
  }

  /** Routes with limits of their own in these layers. */
  get routes(): readonly string[] {
    return [...new Set(this.layers.flatMap((layer) => [...layer.routes]))];
  }

  /** @throws SubjectError if the windows depend on the route, and none is given */
  windowSetFor(route: string | undefined): WindowSet {
    if (route === undefined) return this.#windowSetOfEveryRoute();
    return this.#byRoute.get(route) ?? this.#windowSetOfOtherRoutes ?? this.#fill(route);
  }

  /** The window set of every route that no layer names. */
  get windowSetOfOthers(): WindowSet {
    return this.windowSetFor(OTHER_ROUTE);
  }

  #windowSetOfEveryRoute(): WindowSet {
    const windowSet = this.windowSetFor(EVERY_ROUTE);
    const { windows, routeWindows, allMethodsScope } = windowSet;
    const isPerRoute = routeWindows > 0 || (windows.length > 0 && allMethodsScope === 'route');
    if (isPerRoute || this.#byRoute.size > 0) throw new SubjectError('route', undefined, ROUTE_NEEDED);
    return windowSet;
  }

  /** On first use, creates all window sets: one for each route with its own limit, and one for all other routes. */
  #fill(route: string): WindowSet {
    const { layers, factory } = this;
    for (const layer of layers)
      for (const own of layer.routes) this.#byRoute.set(own, factory.createWindowSet(layers, own));
    // No layer names a symbol, so this is the window set of every route that no layer names.
    this.#windowSetOfOtherRoutes = factory.createWindowSet(layers, OTHER_ROUTE);
    return this.windowSetFor(route);
  }
}
