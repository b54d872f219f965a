import { createRouteTree, type LookUp, type RouteTemplate, shapeOf } from 'headgate-simulate/routes';
import { parseRoute } from '../config/routes.ts';
import { tolerantTemplate } from '../config/sibling-routes.ts';
import { tolerantSegments } from '../config/tolerant-path.ts';

/** Finds paths that a tolerant upstream reads as the path of another route. */
export interface SimilarRoutes {
  /**
   * Whether a request that matches `route` may be one for another route in the eyes of the upstream.
   * @param route name of a route of the config
   * @param segments of the request's path, decoded once
   */
  hides(route: string, method: string, segments: readonly string[]): boolean;
}

/** @param names of the routes of a checked config */
export function createSimilarRoutes(names: readonly string[]): SimilarRoutes {
  const tree = createRouteTree<string>();
  const shapes = new Map<string, string>();
  const templates = names.map((name) => tolerantTemplate(parseRoute(name) as RouteTemplate));
  for (const [i, template] of templates.entries()) {
    const shape = shapeOf(template);
    shapes.set(names[i] as string, shape);
    tree.add(template, shape);
  }
  const own = new Set(shapes.values());
  for (const template of templates) {
    // `/pay/*` takes `/pay/`, which a tolerant server reads as `/pay`.
    const withoutRest = { ...template, segments: template.segments.filter((segment) => !('wildcard' in segment)) };
    if (withoutRest.segments.length < template.segments.length && !own.has(shapeOf(withoutRest)))
      tree.add(withoutRest, shapeOf(template));
  }
  return {
    hides(route, method, segments) {
      const shape = tree.find(method, tolerantSegments(segments.join('/')), withOrWithoutExtension);
      // Routes of one shape, such as `GET /Users/{id}` and `GET /users/{id}`, are all in the config on purpose.
      return shape !== undefined && shape !== shapes.get(route);
    },
  };
}

/** Rails and older versions of Spring read `/special.json` as `/special`. */
const withOrWithoutExtension: LookUp = (literals, segment) =>
  literals.get(segment) ?? literals.get(segment.slice(0, Math.max(0, segment.lastIndexOf('.'))));
