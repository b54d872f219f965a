import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { MaybePromise } from '../../base/maybe-promise.ts';
import type { IdempotentRequest } from '../../gate/idempotent-request.ts';
import { joinedField } from '../../http/compared-fields.ts';
import { type KeyFault, readIdempotencyKey } from '../../http/idempotency-key.ts';
import { fieldValues } from '../../http/raw-fields.ts';
import {
  checkRequestOptions,
  type IdempotentRequestOptions,
  type ReadableRequest,
  type ReadBodyOptions,
  readField,
  readIdempotentRequest,
} from '../shared/request.ts';
import { checkNodeRequest, type NodeRequest, streamOf } from './http.ts';
import { readAndPutBack } from './put-back.ts';

/**
 * For a gate's `idempotent` resolver: reads the idempotency key (I1) and, if there is one, the body, to make a
 * fingerprint of it (I3). The body is put back, so that parsers behind the gate find it untouched (I13). Nothing may
 * read the body in front of the gate.
 * @returns undefined if there is no key; a fault, answered with 422, if the header Idempotency-Key or Content-Type is
 * not valid
 * @throws BodyError, which the gate answers with 400, 408, 413 or 422
 * @example
 * ```ts
 * const gate = createGate<IncomingMessage>({
 *   limiter, account, route, idempotency,
 *   idempotent: (request) =>
 *     request.method === 'POST' ? idempotentRequest(request, { scope: applicationOf(request) }) : undefined,
 * });
 * ```
 */
export function idempotentRequest(
  request: NodeRequest,
  options: IdempotentRequestOptions,
): MaybePromise<IdempotentRequest | KeyFault | undefined> {
  checkNodeRequest(request);
  checkRequestOptions(options);
  if (request.headers['idempotency-key'] === undefined) return undefined;
  const key = readIdempotencyKey(fieldValues(request.rawHeaders, 'idempotency-key'));
  if (typeof key !== 'string') return key;
  // Node's `headers` drops the second one; the upstream behind the handler may drop the first.
  if (fieldValues(request.rawHeaders, 'content-type').length > 1) {
    return { detail: 'The header Content-Type is given more than once.' };
  }
  return readIdempotentRequest(readable(request), key, signalOf(request), options);
}

/**
 * For a gate's `account`, if it is a field of the body: reads the body in front of every parser and puts it back
 * untouched (I13). The field must appear exactly once, as a JSON property, a form field or a part of a multipart form,
 * and must not be empty. Do not catch the errors: the rest of a rejected body is discarded, so the handler could not
 * read it.
 * @throws BodyError, which the gate answers with 400, 408, 413 or 422
 * @example
 * ```ts
 * account: (request) => fieldOfBody(request, 'account_id'),
 * ```
 */
export function fieldOfBody(request: NodeRequest, name: string, options?: ReadBodyOptions): Promise<string> {
  checkNodeRequest(request);
  return readField(readable(request), name, options);
}

/** The request for the readers that Node shares with the web. */
export function readable(request: NodeRequest): ReadableRequest {
  return {
    message: request,
    head: () => headOf(request),
    field: (name) => joinedField(request.rawHeaders, name),
    read: (limits) => readAndPutBack(request, limits),
  };
}

function headOf(request: NodeRequest & { readonly originalUrl?: string }) {
  // Connect and Express remove the mount path from `url`.
  const url = request.originalUrl ?? request.url ?? '';
  const mark = url.indexOf('?');
  return {
    method: request.method ?? '',
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? undefined : url.slice(mark + 1),
    contentType: request.headers['content-type'],
    contentEncoding: request.headers['content-encoding'],
  };
}

type Connection = Pick<Socket | ServerHttp2Stream, 'once' | 'destroyed'>;

/** One signal per connection: a signal per request would leave a listener per request on the connection. */
const SIGNALS = new WeakMap<Connection, AbortSignal>();

/** Aborts when the client goes. Watches the connection: a request emits `close` as soon as its body was read. */
function signalOf(request: NodeRequest): AbortSignal {
  const connection: Connection = streamOf(request) ?? request.socket;
  const known = SIGNALS.get(connection);
  if (known !== undefined) return known;
  const gone = new AbortController();
  SIGNALS.set(connection, gone.signal);
  if (connection.destroyed) gone.abort();
  else connection.once('close', () => gone.abort());
  return gone.signal;
}
