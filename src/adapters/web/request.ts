import type { MaybePromise } from '../../core/ports.ts';
import type { IdempotentRequest } from '../../gate/idempotent-request.ts';
import { type KeyFault, readIdempotencyKey } from '../../http/idempotency-key.ts';
import {
  checkRequestOptions,
  type IdempotentRequestOptions,
  type ReadableRequest,
  type ReadBodyOptions,
  readField,
  readIdempotentRequest,
} from '../shared/request.ts';
import { checkWebRequest } from './http.ts';
import { readClone } from './read-clone.ts';

/**
 * For a gate's `idempotent` resolver: reads the idempotency key (I1) and, if there is one, a copy of the body, to make
 * a fingerprint of it (I3). The handler reads the request itself, untouched: `json()`, `formData()`, `body` (I13).
 * Nothing may read the body in front of the gate.
 *
 * `Headers` joins repeated fields by a comma and a space. A key that contains both cannot be distinguished from two
 * keys and is rejected (I1).
 * @returns undefined if there is no key; a fault, answered with 422, if the header Idempotency-Key or Content-Type is
 * not valid
 * @throws BodyError, which the gate answers with 400, 408, 413 or 422
 * @example
 * ```ts
 * const gate = createGate<Request>({
 *   limiter, account, route, idempotency,
 *   idempotent: (request) =>
 *     request.method === 'POST' ? idempotentRequest(request, { scope: applicationOf(request) }) : undefined,
 * });
 * ```
 */
export function idempotentRequest(
  request: Request,
  options: IdempotentRequestOptions,
): MaybePromise<IdempotentRequest | KeyFault | undefined> {
  checkWebRequest(request);
  checkRequestOptions(options);
  const { headers } = request;
  const value = headers.get('idempotency-key');
  const key = readIdempotencyKey(value === null ? [] : [value]);
  if (typeof key !== 'string') return key;
  if (key.includes(', ')) {
    return { detail: 'The header Idempotency-Key is given more than once, or has a comma and a space in it.' };
  }
  // If the field is repeated, the upstream behind the handler may read either value. A comma inside quotes belongs to
  // one value.
  const contentType = headers.get('content-type')?.replace(/"[^"]*"/g, '');
  if (contentType?.includes(',')) return { detail: 'The header Content-Type is given more than once.' };
  return readIdempotentRequest(readable(request), key, request.signal, options);
}

/**
 * For a gate's `account`, if it is a field of the body: reads a copy of the body; the handler finds it untouched (I13).
 * The field must appear exactly once, as a JSON property, a form field or a part of a multipart form, and must not be
 * empty.
 * @throws BodyError, which the gate answers with 400, 408, 413 or 422
 * @example
 * ```ts
 * account: (request) => fieldOfBody(request, 'account_id'),
 * ```
 */
export function fieldOfBody(request: Request, name: string, options?: ReadBodyOptions): Promise<string> {
  checkWebRequest(request);
  return readField(readable(request), name, options);
}

/** The request for the readers that the web shares with Node. */
function readable(request: Request): ReadableRequest {
  return {
    message: request,
    head: () => headOf(request),
    read: (limits) => readClone(request, limits),
  };
}

/** The target exactly as in the URL: parsing would decode it, and would lose a question mark with nothing behind it. */
function headOf({ method, url, headers }: Request) {
  const [plain = ''] = url.split('#', 1);
  const origin = plain.indexOf('://');
  const start = origin < 0 ? 0 : plain.indexOf('/', origin + 3);
  const mark = plain.indexOf('?', start);
  return {
    method,
    path: mark < 0 ? plain.slice(start) : plain.slice(start, mark),
    query: mark < 0 ? undefined : plain.slice(mark + 1),
    contentType: headers.get('content-type') ?? undefined,
    contentEncoding: headers.get('content-encoding') ?? undefined,
  };
}
