import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Account } from './accounts.ts';
import type { Route } from './routes.ts';

/** How an exchange ended, for the log: what the limits said, or which of the gateway's stages answered. */
export type Decided = 'accepted' | 'rejected' | 'degraded' | 'unlimited' | 'refused';

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
    decided: 'refused',
    answered: false,
    last: false,
    release: undefined,
  };
}

/** Whether an answer would still reach somebody. */
export function isOpen({ answered, response }: Exchange): boolean {
  return !answered && !response.destroyed && !response.closed;
}
