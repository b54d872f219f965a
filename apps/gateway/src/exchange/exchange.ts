import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Cost } from 'headgate';
import type { IdempotentRequest } from 'headgate/gate';
import type { HeaderFields, Reply } from 'headgate/http';
import type { Groups } from 'headgate/limits';
import type { BufferShare } from '../body/buffer-budget.ts';
import type { SpooledBody } from '../body/spool.ts';
import type { Route } from '../config/routes.ts';
import type { Account } from '../config/schema.ts';
import type { RequestTrace } from './request-trace.ts';
import type { UpstreamCause } from './upstream-failure.ts';

/** Outcome of a request for the log: the limiter's decision, or the stage that answered instead of the upstream. */
export type DecisionLabel =
  | 'accepted'
  | 'rejected'
  | 'degraded'
  | 'unlimited'
  | 'refused'
  | 'replayed'
  | 'preflight'
  | 'answered';

/** Who asks for a decision in place of having its request forwarded: a program, or another proxy. */
export type Door = 'json' | 'forward_auth';

/** The idempotency key of a request. */
export interface KeyedRequest {
  readonly request: IdempotentRequest;
  /** The `Idempotency-Key` that the upstream receives. */
  readonly forwardedKey: string;
}

/** The facts by which a gate decides. */
export interface Subject {
  readonly route: Route | undefined;
  readonly account: Account | undefined;
  /** What a caller or a proxy says; undefined for the cost of the route. */
  readonly cost: Cost | undefined;
  /** A lane of the limits; undefined without one. */
  readonly lane: string | undefined;
  /** Its groups: an id by name; undefined without any. */
  readonly groups: Groups | undefined;
  readonly idempotent: { readonly request: IdempotentRequest } | undefined;
}

/** One request and its response in the process. Each stage adds its results. */
export interface Exchange extends Subject {
  /** Made by the gateway: `x-request-id` to the client and the upstream, `req_id` in errors and in the log. */
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** On the monotonic timer, in milliseconds. */
  readonly startedAt: number;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  /** The method that is decided about: the request's own, unless another proxy asks about a request. */
  method: string;
  /** The request target that is decided about, likewise. */
  target: string;
  /** Undefined for a request that is to be forwarded. */
  door: Door | undefined;
  cost: Cost | undefined;
  /** The lane of its route or of its key: that with the smaller share. */
  lane: string | undefined;
  /** The groups of its account, its key and its route. */
  groups: Groups | undefined;
  /** Gives the gateway's own answers the form that the asking proxy understands. */
  shape: ((reply: Reply) => Reply) | undefined;
  /** Undefined if nothing is traced. */
  trace: RequestTrace | undefined;
  route: Route | undefined;
  /** Application of the API key. Undefined without a valid key, which only a public route admits. */
  application: string | undefined;
  account: Account | undefined;
  /** The stored body, if it had to be read before forwarding; otherwise the body is streamed. */
  body: SpooledBody | undefined;
  /** Counts the work on the body, if the gateway reads it itself. */
  bodyWork: { giveBack(): void } | undefined;
  /** Set if the route is idempotent and the request carries a key. */
  idempotent: KeyedRequest | undefined;
  /** Where its buffered bytes are counted, once its application is known. */
  buffer: BufferShare | undefined;
  /** Fields of CORS on its answer, whatever it is; undefined if the gateway leaves CORS to the upstream. */
  cors: HeaderFields | undefined;
  /** Ends its place among the running requests of its application. */
  leave: (() => void) | undefined;
  /** The upstream may still read the body, or send its response, even if the client left. */
  forwarding: boolean;
  decision: DecisionLabel;
  /** Why the upstream did not answer, or broke off; undefined if it did neither. */
  upstreamCause: UpstreamCause | undefined;
  /** The candidate's verdict, if it differs and is known when the log line is written. */
  shadow: 'accepted' | 'rejected' | undefined;
  /** An answer began, so no other may begin. */
  answered: boolean;
  /** That answer is the gateway's, or a replay, not the upstream's. */
  hasOwnAnswer: boolean;
  /** The connection closes after this answer. Later requests of the client are ignored. */
  closesConnection: boolean;
  /** Stops the forwarding of this exchange; undefined if nothing has to be stopped. */
  release: (() => void) | undefined;
  /** Called when the response is closed, after its line of the log. */
  onClosed: (() => void) | undefined;
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
    method: request.method ?? '',
    target: request.url ?? '',
    door: undefined,
    cost: undefined,
    lane: undefined,
    groups: undefined,
    shape: undefined,
    trace: undefined,
    route: undefined,
    application: undefined,
    account: undefined,
    body: undefined,
    bodyWork: undefined,
    idempotent: undefined,
    buffer: undefined,
    cors: undefined,
    leave: undefined,
    forwarding: false,
    decision: 'refused',
    upstreamCause: undefined,
    shadow: undefined,
    answered: false,
    hasOwnAnswer: false,
    closesConnection: false,
    release: undefined,
    onClosed: undefined,
  };
}

/** Gives the exchange a stored body, which is freed with the exchange. */
export function attachBody(exchange: Exchange, body: SpooledBody): void {
  exchange.body = body;
  // The client may already be gone.
  freeIfDone(exchange);
}

/**
 * Frees the body and the places of the exchange, if its response is closed and it is not being forwarded. Called
 * whenever either may become true.
 */
export function freeIfDone(exchange: Exchange): void {
  const { response, forwarding, body, buffer, leave } = exchange;
  if (forwarding || !(response.closed || response.destroyed)) return;
  exchange.leave = undefined;
  leave?.();
  if (body === undefined) buffer?.release();
  // The bytes count until the file is closed.
  else void body.dispose().then(() => buffer?.release());
}

/** Whether the client could still receive an answer. */
export function isOpen({ answered, request, response }: Exchange): boolean {
  // A connection that was just cut is not yet visible on its responses.
  return !answered && !response.destroyed && !response.closed && !request.socket.destroyed;
}
