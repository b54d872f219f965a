/**
 * For `node:http` and Connect.
 * @module headgate/node
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Gate } from '../gate/exchange.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { gateOf, letPass, send, whenEntered } from './node-bridge.ts';

export { fieldOfBody, type ReadBodyOptions } from './node-body.ts';
export { passageOf, servedFromCache } from './node-bridge.ts';
export { type IdempotentRequestOptions, idempotentRequest } from './node-idempotent.ts';

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
 * Puts a gate in front of one `node:http` handler.
 * @example
 * ```ts
 * createServer(withHeadgate(gate, (request, response) => response.end('sent')));
 * ```
 */
export function withHeadgate<Request extends IncomingMessage>(
  gate: Gate<Request>,
  handler: NodeHandler<Request>,
  options?: RouteOptions<Request>,
): NodeHandler<Request> {
  const own = gateOf(gate, options);
  return (request, response) => enter(own, request, response, () => handler(request, response));
}

/** @param go the handler, or the way to it */
function enter<Request extends IncomingMessage>(
  gate: Gate<Request>,
  request: Request,
  response: ServerResponse,
  go: () => unknown,
): void {
  whenEntered(gate.enter(request), (entry) => {
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
