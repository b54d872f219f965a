/**
 * For `node:http` and Connect.
 * @module headgate/node
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { letPass, passageOf, send, whenEntered } from './node/bridge.ts';
import { checkHandler, gateOf } from './shared/gate-of.ts';

export { fieldOfBody, type ReadBodyOptions } from './node/body.ts';
export { servedFromCache } from './node/bridge.ts';
export type { NodeRequest, NodeResponse } from './node/http.ts';
export { type IdempotentRequestOptions, idempotentRequest } from './node/idempotent-request.ts';
export { passageOf };

/** Connect style: works with `connect`, and by hand in front of any `node:http` handler. */
export type NodeMiddleware<Request extends IncomingMessage = IncomingMessage> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** A `node:http` request listener. */
export type NodeHandler<Request extends IncomingMessage = IncomingMessage> = (
  request: Request,
  response: ServerResponse,
) => void;

/** A request listener of `node:http2`, by its compatibility API. */
export type Http2Handler<Request extends Http2ServerRequest = Http2ServerRequest> = (
  request: Request,
  response: Http2ServerResponse,
) => void;

/**
 * Mounts a gate as middleware.
 * @example
 * ```ts
 * app.use(headgate(gate));
 * ```
 */
export function headgate<Request extends IncomingMessage>(
  gate: Gate<Request>,
  options?: RouteOptions<Request>,
): NodeMiddleware<Request> {
  const own = gateOf(gate, options);
  return (request, response, next) => enter(own, request, response, next);
}

/**
 * Puts a gate in front of one handler of `node:http`, or of `node:http2`. In HTTP/2 it sees what is answered by the `response`, not by its `stream`.
 * @example
 * ```ts
 * createServer(withHeadgate(gate, (request, response) => response.end('sent')));
 * ```
 */
export function withHeadgate<Request extends IncomingMessage>(
  gate: Gate<Request>,
  handler: NodeHandler<Request>,
  options?: RouteOptions<Request>,
): NodeHandler<Request>;
export function withHeadgate<Request extends Http2ServerRequest>(
  gate: Gate<Request>,
  handler: Http2Handler<Request>,
  options?: RouteOptions<Request>,
): Http2Handler<Request>;
export function withHeadgate(
  gate: Gate<never>,
  handler: (request: never, response: never) => void,
  options?: RouteOptions<never>,
): unknown {
  const own = gateOf(gate, options);
  checkHandler(handler);
  // The bridge knows the two apart where they differ.
  return (request: never, response: never) => enter(own, request, response, () => handler(request, response));
}

/** @param go the handler, or the way to it */
function enter<Request extends IncomingMessage>(
  gate: Gate<Request>,
  request: Request,
  response: ServerResponse,
  go: () => unknown,
): void {
  whenEntered(gate.enter(request, undefined, passageOf(response)), (entry) => {
    if (entry.kind === 'answer') return send(response, entry.reply);
    const answer = letPass(response, entry);
    if (answer === undefined) return void go();
    if (answer !== 'gone') failWith(answer, go);
  });
}

/** A handler that fails in front of nobody leaves an outcome behind all the same; its error surfaces where it would have without us. */
function failWith(answer: { fail(): void }, go: () => unknown): void {
  try {
    const running = go();
    if (running instanceof Promise) {
      void running.catch((error: unknown) => {
        answer.fail();
        throw error;
      });
    }
  } catch (error) {
    answer.fail();
    throw error;
  }
}
