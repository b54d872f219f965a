import type { RouteTemplate } from 'headgate-simulate/routes';
import { createRouteTree } from 'headgate-simulate/routes';
import { parseRoute, type Route, routesOf } from '../config/routes.ts';
import type { Config } from '../config/schema.ts';
import { createSimilarRoutes } from './similar-routes.ts';

/** A request's route, with the values of its parameters. */
export interface RouteMatch {
  readonly route: Route;
  /** Percent-decoded once, by name; none is empty. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** Finds routes by method and path. */
export interface Routes {
  /**
   * Each segment of the path is percent-decoded before it is compared. A literal wins over a parameter, and a parameter
   * over a wildcard. HEAD is matched as GET if no HEAD route matches.
   * @param path raw, checked by `readTarget`. Case, a trailing slash and an empty parameter make another path
   */
  match(method: string, path: string): RouteMatch | undefined;
  /** Every method that is routed for this path, with its route. */
  methodsOf(path: string): ReadonlyMap<string, Route>;
}

/** The stored form of a route. */
interface StoredRoute {
  readonly route: Route;
  /** Names of the parameters, with the index of each in the path. */
  readonly parameters: readonly (readonly [name: string, segment: number])[];
  /** Whether it matches only one path. */
  readonly isLiteral: boolean;
}

const NO_PARAMETERS: RouteMatch['parameters'] = new Map();

/** @param config with checked routes */
export function createRoutes(config: Pick<Config, 'routes' | 'idempotency' | 'strictSiblings'>): Routes {
  const tree = createRouteTree<StoredRoute>();
  const methods = new Set<string>();
  const similar = config.strictSiblings ? createSimilarRoutes(config.routes.map(({ route }) => route)) : undefined;
  for (const route of routesOf(config)) {
    const { method, segments } = parseRoute(route.name) as RouteTemplate;
    const parameters = segments.flatMap((segment, i) =>
      'parameter' in segment ? [[segment.parameter, i] as const] : [],
    );
    methods.add(method);
    if (method === 'GET') methods.add('HEAD');
    const isLiteral = segments.every((segment) => 'literal' in segment);
    tree.add({ method, segments }, { route, parameters, isLiteral });
  }
  const match = (method: string, segments: readonly string[]): RouteMatch | undefined => {
    const stored = tree.find(method, segments);
    if (stored === undefined) return undefined;
    const { route, parameters, isLiteral } = stored;
    if (!isLiteral && similar?.hides(route.name, method, segments)) return undefined;
    if (parameters.length === 0) return { route, parameters: NO_PARAMETERS };
    return { route, parameters: new Map(parameters.map(([name, i]) => [name, segments[i] as string])) };
  };
  return {
    match: (method, path) => match(method, decodedSegments(path)),
    methodsOf(path) {
      const segments = decodedSegments(path);
      const found = new Map<string, Route>();
      for (const method of methods) {
        const { route } = match(method, segments) ?? {};
        if (route !== undefined) found.set(method, route);
      }
      return found;
    },
  };
}

/** Decodes each segment once. `readTarget` refuses encoded slashes, so decoding makes no new segments. */
function decodedSegments(path: string): string[] {
  const segments = path.slice(1).split('/');
  return path.includes('%') ? segments.map(decodeURIComponent) : segments;
}
