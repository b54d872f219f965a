import type { OutgoingHttpHeaders } from 'node:http';
import { problemReply, type Reply } from '../../http/problem.ts';
import { type Exchange, isOpen } from './exchange.ts';
import type { Refusal } from './refusal.ts';

/** Longest wait for the rest of a body that nobody reads, before its connection is cut. */
const LINGER_MS = 2_000;
/** A body of this length at most is read to its end rather than cut off, so that the connection can be used again. */
const WORTH_READING = 65_536;

/** Answers with the error object; does nothing where the answer has begun. */
export function refuseExchange(
  exchange: Exchange,
  refusal: Refusal,
  { cut = false, headers = {} }: { readonly cut?: boolean; readonly headers?: Reply['headers'] | undefined } = {},
): void {
  exchange.release?.();
  sendReply(exchange, problemReply(refusal.problem(exchange.id), headers), cut);
}

/**
 * Answers with something of ours. A body that is still coming in is read and thrown away within bounds: to close at once would make
 * the client's system drop the answer with the connection.
 * @param cut the rest of the body cannot be read: it is malformed
 */
export function sendReply(exchange: Exchange, { status, headers, body }: Reply, cut = false): void {
  if (!isOpen(exchange)) return;
  exchange.answered = true;
  const { request, response, id } = exchange;
  const linger = cut || isUnbounded(exchange);
  // After something malformed, what follows on the connection may be part of it.
  if (linger || status === 400) {
    exchange.last = true;
    response.shouldKeepAlive = false;
  }
  const fields: OutgoingHttpHeaders = { ...headers, 'x-request-id': id };
  // A replay of an answer to HEAD: how long the body would be is not known.
  if (request.method === 'HEAD' && body.length === 0) delete fields['content-length'];
  response.writeHead(status, fields);
  if (!linger) {
    response.end(body);
    discardBody(exchange);
    return;
  }
  response.write(body);
  // An answer to HEAD has no body that would take the head along.
  response.flushHeaders();
  const end = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, cut || exchange.expectsContinue ? 0 : LINGER_MS);
  request.once('end', end).once('close', end);
  request.unpipe();
  request.resume();
}

/** Reads what is left of a body, and cuts the connection where it does not end soon. For exchanges that have been answered. */
export function discardBody({ request }: Exchange): void {
  if (request.complete) return;
  request.unpipe();
  request.resume();
  const timer = setTimeout(() => request.socket?.destroy(), LINGER_MS).unref();
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
}

function isUnbounded({ request }: Exchange): boolean {
  if (request.complete || !hasBody(request.headers)) return false;
  return !(Number(request.headers['content-length']) <= WORTH_READING);
}

/** Whether a request has a body, by its framing. */
export function hasBody(headers: Exchange['request']['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
