/**
 * For Express 4 and 5.
 * @module headgate/express
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Gate } from '../gate/exchange.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { headgate as mount } from './node.ts';
import { operationOf } from './operation.ts';

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

/** Middleware of Express, 4 or 5. */
export type ExpressMiddleware<Request extends ExpressRequest> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

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
): ExpressMiddleware<Request> {
  return mount(gate, options);
}

/**
 * A gate's `route`: the template that matched, `POST /api/v1/chats/:id`. Express knows it inside a route only, and of a router that is mounted
 * under a parameter it knows the URL, not the template: give such a route its name, `headgate(gate, { route: 'GET /users/:id/chats' })`.
 * @throws Error outside a route, and in one whose path is no text: passing without limits would go unnoticed
 */
export function routeOf(request: ExpressRequest): string {
  const path = request.route?.path;
  if (typeof path === 'string') return operationOf(request.method, request.baseUrl + path);
  throw new Error(
    "routeOf() finds no template: mount the gate inside a route, app.post('/x', headgate(gate), …), or name the route in its options.",
  );
}
