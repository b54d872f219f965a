import type { IncomingMessage, ServerResponse } from 'node:http';
import type { IdempotentRequest } from '../../gate/idempotent-request.ts';
import type { Account } from '../admission/accounts.ts';
import type { Route } from '../admission/routes.ts';
import type { SpooledBody } from '../body/spool.ts';

/** How an exchange ended, for the log: what the limits said, or which of the gateway's stages answered. */
export type Decided = 'accepted' | 'rejected' | 'degraded' | 'unlimited' | 'refused' | 'replayed';

/** What makes a request idempotent, here and at the upstream. */
export interface Idempotent {
  readonly request: IdempotentRequest;
  /** The `Idempotency-Key` that the upstream sees. */
  readonly forwardedKey: string;
}

/** One request and its answer on their way through the process; what each stage finds out is added to it. */
export interface Exchange {
  /** Ours: `x-request-id` to the client and the upstream, `req_id` in errors and in the log. */
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** On the monotonic timer, in milliseconds. */
  readonly startedAt: number;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
  route: Route | undefined;
  account: Account | undefined;
  /** Where it had to be read before the request goes on; otherwise it streams. */
  body: SpooledBody | undefined;
  /** Of a request with a key on an idempotent route. */
  idempotent: Idempotent | undefined;
  /** The upstream may be reading the body, whatever becomes of the client. */
  forwarding: boolean;
  decided: Decided;
  /** Ours or the upstream's answer has begun; nobody else may answer. */
  answered: boolean;
  /** The connection ends with this answer: what the client has sent behind it is not to be looked at. */
  last: boolean;
  /** Stops what runs for this exchange, where something does. */
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
    account: undefined,
    body: undefined,
    idempotent: undefined,
    forwarding: false,
    decided: 'refused',
    answered: false,
    last: false,
    release: undefined,
  };
}

/** Holds a body that was read until nobody needs it: neither the exchange nor its forwarding. */
export function holdBody(exchange: Exchange, body: SpooledBody): void {
  exchange.body = body;
  const { response } = exchange;
  const letGo = (): void => {
    if (!exchange.forwarding) void body.dispose();
  };
  // One that waited behind another answer may have been told already that its connection has gone.
  if (response.closed || response.destroyed) letGo();
  else response.once('close', letGo);
}

/** Whether an answer would still reach somebody. */
export function isOpen({ answered, response }: Exchange): boolean {
  return !answered && !response.destroyed && !response.closed;
}
