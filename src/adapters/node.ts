/**
 * For `node:http`, `node:http2` and Connect.
 * @module headgate/node
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { AddressLimits } from '../address/options.ts';
import { OptionError } from '../base/errors.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { enterGate } from './node/bridge.ts';
import { isNodeRequest, type NodeMiddleware, type NodeRequest, nodePeer } from './node/http.ts';
import { prepareRejection, sendReply } from './node/send.ts';
import { checkAnswers, checkHandler, gateForRoute, refuseMount } from './shared/mount.ts';

export type { AddressLimits } from '../address/options.ts';
export { passageOf, servedFromCache } from './node/bridge.ts';
export type { NodeMiddleware, NodeRequest, NodeResponse } from './node/http.ts';
export { readAhead } from './node/read-ahead.ts';
export { fieldOfBody, idempotentRequest } from './node/request.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

/** A request listener of `node:http`. */
export type NodeHandler<Request extends IncomingMessage = IncomingMessage> = (
  request: Request,
  response: ServerResponse,
) => void;

/** A request listener of the compatibility API of `node:http2`. */
export type Http2Handler<Request extends Http2ServerRequest = Http2ServerRequest> = (
  request: Request,
  response: Http2ServerResponse,
) => void;

const PEER = /* @__PURE__ */ nodePeer((request: NodeRequest) => request);

/**
 * Mounts a gate as middleware, or limits by the client's address.
 * @throws OptionError
 * @example
 * ```ts
 * app.use(headgate(gate));
 * app.use(headgate({ perAddress: ['100/1m'] }));
 * ```
 */
export function headgate<Request extends IncomingMessage>(
  gate: Gate<Request> | AddressLimits<Request>,
  options?: RouteOptions<Request>,
): NodeMiddleware<Request> {
  const routeGate = gateForRoute(gate, PEER, options);
  return (request, response, next) => {
    if (!isNodeRequest(request)) return refuseMount('request', request, "Node's request", next);
    if (typeof next !== 'function')
      throw new OptionError('next', next, 'must be a function: without middleware, use withHeadgate(gate, handler)');
    enter(routeGate, request, response, next, next);
  };
}

/**
 * Puts a gate in front of one handler of `node:http` or `node:http2`. In HTTP/2 the gate sees only what is written to
 * the `response`, not what is written to its `stream`.
 * @throws OptionError
 * @example
 * ```ts
 * createServer(withHeadgate(gate, (request, response) => response.end('sent')));
 * ```
 */
export function withHeadgate<Request extends IncomingMessage>(
  gate: Gate<Request> | AddressLimits<Request>,
  handler: NodeHandler<Request>,
  options?: RouteOptions<Request>,
): NodeHandler<Request>;
export function withHeadgate<Request extends Http2ServerRequest>(
  gate: Gate<Request> | AddressLimits<Request>,
  handler: Http2Handler<Request>,
  options?: RouteOptions<Request>,
): Http2Handler<Request>;
export function withHeadgate(
  gate: Gate<never> | AddressLimits<never>,
  handler: (request: never, response: never) => void,
  options?: RouteOptions<never>,
): unknown {
  const routeGate = gateForRoute<never>(gate, PEER, options);
  checkHandler(handler);
  checkAnswers(routeGate);
  // Typed as HTTP/1; the bridge handles what differs in HTTP/2.
  return (request: never, response: never) => enter(routeGate, request, response, () => handler(request, response));
}

/**
 * @param run calls the handler, or the next middleware
 * @param reject passes an error to the framework
 */
function enter<Request extends IncomingMessage>(
  gate: Gate<Request>,
  request: Request,
  response: ServerResponse,
  run: () => unknown,
  reject?: (error: unknown) => void,
): void {
  void enterGate<Request, void>(gate, request, {
    response,
    answer: (reply) => sendReply(response, reply),
    reject: reject && ((error) => (prepareRejection(response, error) ? reject(error) : undefined)),
    proceed: (capture) => (capture === undefined ? void run() : runCaptured(run, capture)),
    skip: () => {},
  });
}

/**
 * Runs a handler whose response is recorded. If the handler fails, its client gets no answer, but the failure is an
 * outcome. The error is thrown on, as it would be without the gate.
 */
function runCaptured(run: () => unknown, capture: { fail(): void }): void {
  const failed = (error: unknown): never => {
    capture.fail();
    throw error;
  };
  try {
    const running = run();
    // Only a real promise: a lazy thenable, such as a query or a request of a client library, would start when its
    // `then` is called.
    if (running instanceof Promise) void running.catch(failed);
  } catch (error) {
    failed(error);
  }
}
