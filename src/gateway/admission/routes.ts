import createRouter from 'find-my-way';
import { parametersOf, parseRoute, type Route, type RouteTemplate, routesOf, type Segment } from '../config/routes.ts';
import type { Config } from '../config/schema.ts';

/** A request's route, with the values of its parameters. */
export interface RouteMatch {
  readonly route: Route;
  /** Percent-decoded, by name; none is empty. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** Finds routes by method and path. */
export interface Routes {
  /** @param path raw, checked by `readTarget`. Case, a trailing slash and an empty parameter make another path */
  match(method: string, path: string): RouteMatch | undefined;
}

/** @param config with checked routes */
export function createRoutes(config: Pick<Config, 'routes' | 'idempotency'>): Routes {
  // A request head has at most 16 KiB, so this router never cuts off a parameter.
  const router = createRouter({ caseSensitive: true, maxParamLength: 65_536 });
  for (const route of routesOf(config)) {
    const { method, segments } = parseRoute(route.name) as RouteTemplate;
    const stored = { route, names: parametersOf(segments) };
    router.on(method as createRouter.HTTPMethod, patternOf(segments), () => {}, stored);
  }
  return {
    match(method, path) {
      const result = router.find(method as createRouter.HTTPMethod, path);
      if (result === null) return undefined;
      const { route, names } = result.store as { route: Route; names: string[] };
      const values = names.map((_, index) => result.params[`p${index}`] ?? '');
      if (values.includes('')) return undefined;
      return { route, parameters: new Map(names.map((name, index) => [name, values[index] as string])) };
    },
  };
}

/** In the router's syntax. Parameters are numbered, so that no name has a special meaning to the router. */
function patternOf(segments: readonly Segment[]): string {
  let parameter = 0;
  return segments
    .map((segment) => ('literal' in segment ? `/${segment.literal.replaceAll(':', '::')}` : `/:p${parameter++}`))
    .join('');
}
