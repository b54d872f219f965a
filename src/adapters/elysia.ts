/**
 * For Elysia 1.4.
 * @module headgate/elysia
 */

import type { AnyElysia } from 'elysia';
import type { Gate, Passage } from '../gate/exchange.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { gateOf } from './gate-of.ts';
import { operationOf } from './operation.ts';
import { enterGate, servedFromCache as fromCache, passageOf as passageOfRequest } from './web.ts';
import {
  type IdempotentRequestOptions,
  type ReadBodyOptions,
  fieldOfBody as webFieldOfBody,
  idempotentRequest as webIdempotentRequest,
} from './web-request.ts';

export type { IdempotentRequestOptions, ReadBodyOptions };

/** What resolvers are given: Elysia has no context yet, since nothing was read of the request. */
export interface ElysiaRequest {
  readonly request: Request;
  /** The template that will match, `/api/v1/chats/:id`; undefined where none does. */
  readonly route: string | undefined;
}

/** Options of {@link headgate}. */
export interface HeadgateOptions {
  /** What single routes say in place of the gate's options, by template: `{ '/api/v1/emails': { cost: 2 } }`. */
  readonly routes?: Readonly<Record<string, RouteOptions<ElysiaRequest>>> | undefined;
}

type Router = AnyElysia['router']['http'];
type Fetch = (...given: unknown[]) => unknown;

/**
 * Mounts a gate around a whole app, in front of every hook and body parser, wherever in the app it is used.
 * @example
 * ```ts
 * new Elysia().use(headgate(gate)).post('/api/v1/emails', () => 'sent');
 * ```
 */
export function headgate(
  gate: Gate<ElysiaRequest>,
  { routes = {} }: HeadgateOptions = {},
): <App extends AnyElysia>(app: App) => App {
  const general = gateOf(gate);
  const gates = new Map(Object.keys(routes).map((route) => [route, gateOf(gate, routes[route])]));
  return (app) => {
    let find: ReturnType<typeof finder> | undefined;
    const around = (fetch: Fetch, request: Request) => {
      return (...given: unknown[]) => {
        // Not before: routes may be added until the first request.
        find ??= finder(app);
        const route = find(request);
        const own = (route === undefined ? undefined : gates.get(route)) ?? general;
        return enterGate(own, { request, route }, { request, go: () => fetch(...given) });
      };
    };
    app.wrap(around as never);
    return app;
  };
}

/** A gate's `route`: `POST /api/v1/chats/:id`; all that no template matches counts as one. */
export function routeOf({ request, route }: ElysiaRequest): string {
  return operationOf(request.method, route ?? '/*');
}

/** What a gate's `idempotent` resolver returns; see `idempotentRequest` of `headgate/fetch`. */
export function idempotentRequest({ request }: ElysiaRequest, options: IdempotentRequestOptions) {
  return webIdempotentRequest(request, options);
}

/** A gate's `account` that stands in the body; see `fieldOfBody` of `headgate/fetch`. */
export function fieldOfBody({ request }: ElysiaRequest, name: string, options?: ReadBodyOptions): Promise<string> {
  return webFieldOfBody(request, name, options);
}

/** Says, before the handler returns, that a cache answers this request after all: its charge is taken back (S12). Takes Elysia's context. */
export function servedFromCache({ request }: { readonly request: Request }): void {
  fromCache(request);
}

/** The passage of this request: its `decision`, and `abandon()` for one that never reached the provider. Takes Elysia's context. */
export function passageOf({ request }: { readonly request: Request }): Passage | undefined {
  return passageOfRequest(request);
}

/** Finds templates with a router of Elysia's own kind: its own holds handlers, and not what they were registered by. */
function finder(app: AnyElysia): (request: Request) => string | undefined {
  const router = new (app.router.http.constructor as new () => Router)();
  for (const { method, path } of app.routes) router.add(method, path, path as never);
  return ({ method, url }) => {
    const start = url.indexOf('/', url.indexOf('://') + 3);
    const [path = '/'] = url.slice(start).split(/[?#]/, 1);
    const paths = path.length > 1 && path.endsWith('/') ? [path, path.slice(0, -1)] : [path, `${path}/`];
    const methods = method === 'HEAD' ? [method, 'GET', 'ALL'] : [method, 'ALL'];
    for (const one of paths) {
      for (const verb of methods) {
        const found = router.find(verb, one)?.store as string | undefined;
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
}
