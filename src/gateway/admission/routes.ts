import createRouter from 'find-my-way';
import { parametersOf, parseRoute, type RouteTemplate, type Segment } from '../config/route-template.ts';
import type { Config } from '../config/schema.ts';
import { type AccountSource, parseSource } from './account-source.ts';

/** A route of the config. */
export interface Route {
  /** As the config has it, e.g. `GET /api/v1/chats/{chat_id}`: what limits, metrics and the log call it. */
  readonly name: string;
  /** Where the account stands; undefined: the route is not limited. */
  readonly source: AccountSource | undefined;
  /** How outcomes are kept by idempotency key; undefined: the route is not idempotent. */
  readonly idempotent: RouteIdempotency | undefined;
}

/** As the config says it, the route's own over the common. */
export type RouteIdempotency = Config['idempotency'];

/** A route that a request is for. */
export interface RouteMatch {
  readonly route: Route;
  /** Percent-decoded, by name; none is empty. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** Finds routes by method and path. */
export interface Routes {
  /** @param path raw, checked by `readTarget`; exact: another case, a trailing slash or an empty parameter is another path */
  match(method: string, path: string): RouteMatch | undefined;
}

/** @param config whose routes have been checked */
export function createRoutes({ routes: config, idempotency }: Pick<Config, 'routes' | 'idempotency'>): Routes {
  // A head has 16 KiB at most, so no parameter is cut off by the router's own bound.
  const router = createRouter({ caseSensitive: true, maxParamLength: 65_536 });
  for (const { route, account, idempotent = false } of config) {
    const template = parseRoute(route) as RouteTemplate;
    const parameters = parametersOf(template);
    const found = {
      route: {
        name: route,
        source: account === undefined ? undefined : parseSource(account),
        idempotent: idempotent === false ? undefined : { ...idempotency, ...(idempotent === true ? {} : idempotent) },
      },
      parameters,
    };
    router.on(template.method as createRouter.HTTPMethod, patternOf(template.segments), () => {}, found);
  }
  return {
    match(method, path) {
      const found = router.find(method as createRouter.HTTPMethod, path);
      if (found === null) return undefined;
      const { route, parameters } = found.store as { route: Route; parameters: string[] };
      const values = parameters.map((_, index) => found.params[`p${index}`] ?? '');
      if (values.includes('')) return undefined;
      return { route, parameters: new Map(parameters.map((name, index) => [name, values[index] as string])) };
    },
  };
}

/** In the router's own language, with parameters by number, so that no name means anything to it. */
function patternOf(segments: readonly Segment[]): string {
  let parameter = 0;
  return segments
    .map((segment) => ('literal' in segment ? `/${segment.literal.replaceAll(':', '::')}` : `/:p${parameter++}`))
    .join('');
}
