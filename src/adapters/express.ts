/**
 * For Express 4 and 5.
 * @module headgate/express
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { headgate as mount, type NodeMiddleware } from './node.ts';
import { routeName } from './shared/route-name.ts';

export {
  fieldOfBody,
  type IdempotentRequestOptions,
  idempotentRequest,
  passageOf,
  type ReadBodyOptions,
  servedFromCache,
} from './node.ts';

/** What is needed of a request of Express, 4 or 5; `express.Request` is one. */
export interface ExpressRequest extends IncomingMessage {
  readonly baseUrl: string;
  readonly originalUrl: string;
  readonly params: object;
  readonly res?: ServerResponse | undefined;
  // Express has it as `any`: it is known inside a route only.
  readonly route?: { readonly path?: unknown } | undefined;
}

/** Middleware of Express, 4 or 5. As with body parsers, the types of the handlers behind it follow from their path. */
export type ExpressMiddleware = NodeMiddleware;

/**
 * Mounts a gate in front of one route, or of all of an application or router. In front of body parsers, where requests carry idempotency keys.
 * @example
 * ```ts
 * app.post('/api/v1/emails', headgate(gate), (request, response) => response.send('sent'));
 * app.get('/api/v1/chats/:id', headgate(gate, { cost: 2 }), handler);
 * ```
 */
export function headgate<Request extends ExpressRequest>(
  gate: Gate<Request>,
  options?: RouteOptions<Request>,
): ExpressMiddleware {
  return mount(gate, options) as ExpressMiddleware;
}

/**
 * A gate's `route`: the template that matched, `POST /api/v1/chats/:id`. Express knows it inside a route only, and of where its router is mounted
 * it knows the URL, not the template: that part is in lower case, however the client or the mount spells it. Of a router that is mounted under a
 * parameter or a pattern give the routes their names, `headgate(gate, { route: 'GET /users/:id/chats' })`.
 * @throws Error outside a route, in one whose path is no text, and in one that sees a parameter of its mount (`mergeParams`): passing without
 * limits would go unnoticed
 */
export function routeOf({ method, baseUrl, params, route }: ExpressRequest): string {
  const path = route?.path;
  if (typeof path !== 'string') {
    throw new Error(
      "routeOf() finds no template: mount the gate inside a route, app.post('/x', headgate(gate), …), or name the route in its options.",
    );
  }
  if (baseUrl === '') return routeName(method, path);
  const foreign = Object.keys(params).find((name) => !isOf(path, name));
  if (foreign !== undefined) {
    throw new Error(
      `routeOf() finds no template of a router that is mounted under :${foreign}: name the route, headgate(gate, { route: '…' }).`,
    );
  }
  return routeName(method, baseUrl.toLowerCase() + path);
}

/** Whether a template has this parameter; those that are numbered have no name to tell by. */
function isOf(template: string, name: string): boolean {
  return /^\d+$/.test(name) || [':', '*', '"'].some((mark) => template.includes(mark + name));
}
