import type { IncomingMessage, ServerResponse } from 'node:http';
import type { IdempotentRequest } from '../../gate/idempotent-request.ts';
import type { SpooledBody } from '../body/spool.ts';
import type { Route } from '../config/routes.ts';
import type { Account } from '../config/schema.ts';

/** What happened to a request, for the log: the limiter's decision, or what answered instead of the upstream. */
export type DecisionLabel = 'accepted' | 'rejected' | 'degraded' | 'unlimited' | 'refused' | 'replayed';

/** The idempotency key of a request. */
export interface KeyedRequest {
  readonly request: IdempotentRequest;
  /** The `Idempotency-Key` that the upstream receives. */
  readonly forwardedKey: string;
}

/** One request and its response in the process. Each stage adds what it finds. */
export interface Exchange {
  /** Made by the gateway: `x-request-id` to the client and the upstream, `req_id` in errors and in the log. */
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** On the monotonic timer, in milliseconds. */
  readonly startedAt: number;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  route: Route | undefined;
  /** Application of the API key. */
  application: string | undefined;
  account: Account | undefined;
  /** The stored body, if it had to be read before forwarding; otherwise the body is streamed. */
  body: SpooledBody | undefined;
  /** Set if the route is idempotent and the request has a key. */
  idempotent: KeyedRequest | undefined;
  /** The upstream may still read the body, even if the client has gone. */
  forwarding: boolean;
  decision: DecisionLabel;
  /** An answer has begun, so no other may begin. */
  answered: boolean;
  /** The connection closes after this answer. Requests that the client sent behind it are ignored. */
  closesConnection: boolean;
  /** Stops the forwarding of this exchange; undefined if nothing has to be stopped. */
  release: (() => void) | undefined;
}

/** @param id unique in the log */
export function createExchange(
  id: string,
  request: IncomingMessage,
  response: ServerResponse,
  expectsContinue: boolean,
): Exchange {
  return {
    id,
    request,
    response,
    startedAt: performance.now(),
    expectsContinue,
    route: undefined,
    application: undefined,
    account: undefined,
    body: undefined,
    idempotent: undefined,
    forwarding: false,
    decision: 'refused',
    answered: false,
    closesConnection: false,
    release: undefined,
  };
}

/**
 * Gives the exchange a stored body, and frees it when the response closes. If the body is being forwarded then, the
 * forwarding frees it.
 */
export function attachBody(exchange: Exchange, body: SpooledBody): void {
  exchange.body = body;
  const { response } = exchange;
  const free = (): void => {
    if (!exchange.forwarding) void body.dispose();
  };
  // If the response waited behind another answer, its 'close' event may have been emitted already.
  if (response.closed || response.destroyed) free();
  else response.once('close', free);
}

/** Whether the client could still receive an answer. */
export function isOpen({ answered, response }: Exchange): boolean {
  return !answered && !response.destroyed && !response.closed;
}
