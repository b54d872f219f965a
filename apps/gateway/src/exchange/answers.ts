import type { OutgoingHttpHeaders } from 'node:http';
import { problemReply, type Reply } from 'headgate/http';
import { withCorsFields } from './cors-fields.ts';
import { type Exchange, isOpen } from './exchange.ts';
import type { Refusal } from './refusal.ts';

/** Longest wait for the rest of a body that is thrown away. Then its connection is cut. */
const LINGER_MS = 2_000;
/**
 * A body of at most this length is read to its end, so that the connection can be used again. A longer one is cut off.
 */
const MAX_READ_TO_END = 65_536;

/**
 * Every 401 carries a challenge (RFC 9110, section 15.5.2). The challenge for a bearer token needs a parameter (RFC
 * 6750).
 */
const CHALLENGE = { 'www-authenticate': 'Bearer realm="api"' };

/** Answers with the error object; does nothing if an answer already began. */
export function refuseExchange(
  exchange: Exchange,
  refusal: Refusal,
  { cut = false, headers = {} }: { readonly cut?: boolean; readonly headers?: Reply['headers'] | undefined } = {},
): void {
  exchange.release?.();
  sendReply(exchange, refusalReply(refusal, exchange.id, headers), cut);
}

/** The answer that carries the error object of a refusal. */
export function refusalReply(refusal: Refusal, id: string, headers: Reply['headers'] = {}): Reply {
  const { retryAfter, status } = refusal;
  const fields: Record<string, string | string[]> = Object.assign(
    {},
    headers,
    retryAfter !== undefined && { 'retry-after': String(retryAfter) },
    status === 401 && CHALLENGE,
  );
  return problemReply(refusal.problem(id), fields);
}

/**
 * Sends an answer of the gateway. If the request body is still coming in, a bounded part of it is read and thrown away:
 * if the gateway closed at once, the client's system would drop the answer with the connection.
 * @param cut the rest of the body cannot be read, because it is malformed
 */
export function sendReply(exchange: Exchange, reply: Reply, cut = false): void {
  if (!isOpen(exchange)) return;
  const { status, headers, body } = exchange.shape?.(reply) ?? reply;
  exchange.answered = true;
  exchange.hasOwnAnswer = true;
  const { request, response, id } = exchange;
  // After something malformed, the next bytes of the connection may be part of it.
  const closes = cut || status === 400 || hasRest(exchange, MAX_READ_TO_END);
  const linger = cut || (hasRest(exchange, 0) && (closes || !response.shouldKeepAlive));
  if (closes) {
    exchange.closesConnection = true;
    response.shouldKeepAlive = false;
  }
  const fields: OutgoingHttpHeaders = { 'x-request-id': id, ...headers };
  // The answer to HEAD is replayed without its body, so the length is not known.
  if (request.method === 'HEAD' && body.length === 0) delete fields['content-length'];
  response.writeHead(status, withCorsFields(fields, exchange.cors));
  if (!linger) {
    response.end(body);
    discardBody(exchange);
    return;
  }
  response.write(body);
  // Node sends the head with the body, and an answer to HEAD is sent without a body.
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

/** Reads the rest of the request body, and cuts the connection if it does not end soon. Only after an answer. */
export function discardBody({ request }: Exchange): void {
  if (request.complete) return;
  request.unpipe();
  request.resume();
  const timer = setTimeout(() => request.socket?.destroy(), LINGER_MS).unref();
  request.once('end', () => clearTimeout(timer)).once('close', () => clearTimeout(timer));
}

/** Whether the request body is still coming in, and is or may be longer than this many bytes. */
function hasRest({ request }: Exchange, bytes: number): boolean {
  if (request.complete || !hasBody(request.headers)) return false;
  return !(Number(request.headers['content-length']) <= bytes);
}

/** Whether a request includes a body, by its framing. */
export function hasBody(headers: Exchange['request']['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
