/**
 * For Express 4 and 5.
 * @module headgate/express
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressLimits } from '../address/options.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { headgate as mount, type NodeMiddleware } from './node.ts';
import { checkArgument, routeName } from './shared/mount.ts';

export {
  type AddressLimits,
  fieldOfBody,
  type IdempotentRequestOptions,
  idempotentRequest,
  passageOf,
  type ReadBodyOptions,
  readAhead,
  servedFromCache,
} from './node.ts';

/** The part of an Express 4 or 5 request that the adapter uses; `express.Request` fits. */
export interface ExpressRequest extends IncomingMessage {
  readonly baseUrl: string;
  readonly originalUrl: string;
  readonly params: object;
  /** By Express's own setting `trust proxy`; for the option `address` of limits by address. */
  readonly ip?: string | undefined;
  readonly res?: ServerResponse | undefined;
  // `any` in Express, because it is set only inside a route.
  readonly route?: { readonly path?: unknown } | undefined;
}

/** Middleware of Express 4 or 5. Like a body parser, it does not change the types of the handlers behind it. */
export type ExpressMiddleware = NodeMiddleware;

/**
 * Mounts a gate in front of one route, or of a whole application or router; or limits by the client's address. If
 * requests carry idempotency keys, mount the gate in front of body parsers.
 * @throws OptionError
 * @example
 * ```ts
 * app.post('/api/v1/emails', headgate(gate), (request, response) => response.send('sent'));
 * app.get('/api/v1/chats/:id', headgate(gate, { cost: 2 }), handler);
 * app.use(headgate({ perAddress: ['100/1m'] }));
 * ```
 */
export function headgate<Request extends ExpressRequest>(
  gate: Gate<Request> | AddressLimits<Request>,
  options?: RouteOptions<Request>,
): ExpressMiddleware {
  return mount(gate, options) as ExpressMiddleware;
}

/**
 * For a gate's `route`: the template that Express matched, `POST /api/v1/chats/:id`. Express knows it only inside a
 * route. For the path that a router is mounted at, Express knows the URL but not the template. That part is therefore
 * in lower case, however the client or the mount spells it. If a router is mounted under a parameter or a pattern, name
 * its routes: `headgate(gate, { route: 'GET /users/:id/chats' })`.
 * @throws Error outside a route, in a route whose path is not a string, and in a route that sees a parameter of its
 * mount (`mergeParams`): otherwise requests would pass without limits and without notice
 */
export function routeOf(request: ExpressRequest): string {
  checkArgument(typeof request?.baseUrl === 'string', 'request', request, 'a request of Express');
  const { method, baseUrl, params, route } = request;
  const path = route?.path;
  if (typeof path !== 'string') {
    throw new Error(
      "routeOf(): no route template: mount the gate in a route, app.post('/x', headgate(gate), …), or set `route`.",
    );
  }
  if (baseUrl === '') return routeName(method, path);
  const inherited = Object.keys(params).find((name) => !hasParameter(path, name));
  if (inherited !== undefined) {
    throw new Error(
      `routeOf(): no template under mount parameter :${inherited}: set the route, headgate(gate, { route: '…' }).`,
    );
  }
  return routeName(method, baseUrl.toLowerCase() + path);
}

/** Whether a template has this parameter. A numbered parameter is unnamed in the template: it counts as present. */
function hasParameter(template: string, name: string): boolean {
  return /^\d+$/.test(name) || [':', '*', '"'].some((mark) => template.includes(mark + name));
}
