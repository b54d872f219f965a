import type { MaybePromise } from '../../base/maybe-promise.ts';
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

/** See `idempotentRequest` of `headgate/fetch`. */
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

/** See `fieldOfBody` of `headgate/fetch`. */
export function fieldOfBody(request: Request, name: string, options?: ReadBodyOptions): Promise<string> {
  checkWebRequest(request);
  return readField(readable(request), name, options);
}

/** The request for the readers that the web shares with Node. */
function readable(request: Request): ReadableRequest {
  return {
    message: request,
    head: () => headOf(request),
    field: (name) => request.headers.get(name) ?? undefined,
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
