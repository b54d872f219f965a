import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { MaybePromise } from '../../core/ports.ts';
import type { IdempotentRequest } from '../../gate/idempotent-request.ts';
import { createFingerprinter } from '../../http/fingerprint/fingerprint.ts';
import { type KeyFault, readIdempotencyKey } from '../../http/idempotency-key.ts';
import { bothAccounts, type IdempotentRequestOptions } from '../shared/request-options.ts';
import { readBody } from './body.ts';
import { type NodeRequest, streamOf, valuesOf } from './http.ts';

export type { IdempotentRequestOptions };

/**
 * What a gate's `idempotent` resolver returns: reads the key (I1), and, where there is one, the body, once, for its fingerprint (I3). Body
 * parsers behind the gate find the body untouched (I13). Nothing may have read the body before.
 * @returns undefined where there is no key, a fault (422) where it cannot be taken
 * @throws BodyError, which the gate answers: 400, 408, 413, 422
 * @example
 * ```ts
 * const gate = createGate<IncomingMessage>({
 *   limiter, account, route, idempotency,
 *   idempotent: (request) => request.method === 'POST' ? idempotentRequest(request, { scope: applicationOf(request) }) : undefined,
 * });
 * ```
 */
export function idempotentRequest(
  request: NodeRequest,
  options: IdempotentRequestOptions,
): MaybePromise<IdempotentRequest | KeyFault | undefined> {
  if (request.headers['idempotency-key'] === undefined) return undefined;
  const key = readIdempotencyKey(valuesOf(request, 'idempotency-key'));
  if (typeof key !== 'string') return key;
  // Node drops the second one; whoever is asked behind the handler may drop the first.
  if (valuesOf(request, 'content-type').length > 1) {
    return { detail: 'The header Content-Type is given more than once.' };
  }
  return read(request, key, options);
}

async function read(
  request: NodeRequest,
  key: string,
  { scope, account, secret, settings, ...reading }: IdempotentRequestOptions,
): Promise<IdempotentRequest> {
  const signal = signalOf(request);
  const fingerprinter = createFingerprinter(headOf(request), { secret });
  for (const chunk of await readBody(request, reading)) fingerprinter.write(chunk);
  fingerprinter.end();
  const fingerprint = (asked: string | undefined) => fingerprinter.fingerprint(bothAccounts(account, asked));
  return { ...settings, scope, key, fingerprint, signal };
}

function headOf(request: NodeRequest & { readonly originalUrl?: string }) {
  // Connect and Express take the mount path off `url`.
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

/** One for all requests of a connection: a signal of each would leave a listener of each behind. */
const GONE = new WeakMap<Connection, AbortSignal>();

type Connection = Pick<Socket | ServerHttp2Stream, 'once' | 'destroyed'>;

/** Fires when the client goes while its request waits for the original. A request itself tells of its close when its body was read. */
function signalOf(request: NodeRequest): AbortSignal {
  const connection: Connection = streamOf(request) ?? request.socket;
  const known = GONE.get(connection);
  if (known !== undefined) return known;
  const gone = new AbortController();
  GONE.set(connection, gone.signal);
  if (connection.destroyed) gone.abort();
  else connection.once('close', () => gone.abort());
  return gone.signal;
}
