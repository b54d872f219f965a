import { isBodyError } from 'headgate/http';
import { type Refusal, refuse, refuseBody, refuseForNow } from '../exchange/refusal.ts';
import { PoolClosedError, PoolFullError } from './connection-pool.ts';
import { UnreadableResponse } from './response-reader.ts';

export const UPSTREAM_TIMEOUT = refuse(504, 'errors/request_timeout', 'The upstream did not respond in time.');
export const UPSTREAM_BUSY = refuseForNow(
  'Too many requests wait for the upstream. It did not receive this one: try again.',
);
const UNREACHABLE = refuse(
  503,
  'errors/network_down',
  'The upstream cannot be reached. It did not receive the request.',
);
const BROKEN = refuse(
  503,
  'errors/network_down',
  'The upstream closed the connection before it responded. It may have received the request.',
);
const UNREADABLE = refuse(
  503,
  'errors/network_down',
  'The upstream did not respond with valid HTTP. It may have received the request.',
);
export const MALFORMED = refuse(
  400,
  'errors/malformed_request',
  'The request cannot be forwarded: its target or one of its header fields is not valid.',
);
export const BODY_TIMEOUT = refuse(
  408,
  'errors/request_timeout',
  'The rest of the request body did not arrive in time.',
);
export const PROVIDER_LIMIT = refuse(429, 'provider/too_many_requests', "The provider's own rate limit is reached.");

/**
 * The answer to a request whose forwarding failed before the head of a response.
 * @param isSent whether the upstream may have received something
 */
export function refusalOf(error: Error, isSent: boolean): Refusal {
  if (isBodyError(error)) return refuseBody(error);
  if (error instanceof PoolFullError) return UPSTREAM_BUSY;
  if (!isSent) return UNREACHABLE;
  return error instanceof UnreadableResponse ? UNREADABLE : BROKEN;
}

/** Whether the error comes from the upstream or the way to it, not from the client or the gateway's own bounds. */
export function isUpstreamError(error: Error): error is NodeJS.ErrnoException {
  return !isBodyError(error) && !(error instanceof PoolFullError || error instanceof PoolClosedError);
}
