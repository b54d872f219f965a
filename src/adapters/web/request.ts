import type { MaybePromise } from '../../core/ports.ts';
import type { IdempotentRequest } from '../../gate/idempotent-request.ts';
import { BodyError } from '../../http/body-error.ts';
import { createBodyField } from '../../http/field/body-field.ts';
import { createFingerprinter } from '../../http/fingerprint/fingerprint.ts';
import { type KeyFault, readIdempotencyKey } from '../../http/idempotency-key.ts';
import {
  bothAccounts,
  checkReadBody,
  type IdempotentRequestOptions,
  type ReadBodyOptions,
} from '../shared/request-options.ts';
import { readClone } from './read-clone.ts';

export type { IdempotentRequestOptions, ReadBodyOptions };

/** Between the resolvers that want it: each copy of a body would be held whole. */
const BODY = Symbol('headgate.body');

type WithBody = Request & { [BODY]?: Promise<Uint8Array[]> | undefined };

/**
 * What a gate's `idempotent` resolver returns: reads the key (I1), and, where there is one, a copy of the body for its fingerprint (I3). The handler
 * reads the request itself, untouched: `json()`, `formData()`, `body` (I13). Nothing may have read the body before.
 *
 * `Headers` joins what came twice by a comma and a space; a key with both in it cannot be told from two, and is refused (I1).
 * @returns undefined where there is no key, a fault (422) where it cannot be taken
 * @throws BodyError, which the gate answers: 400, 408, 413, 422
 * @example
 * ```ts
 * const gate = createGate<Request>({
 *   limiter, account, route, idempotency,
 *   idempotent: (request) => request.method === 'POST' ? idempotentRequest(request, { scope: applicationOf(request) }) : undefined,
 * });
 * ```
 */
export function idempotentRequest(
  request: Request,
  options: IdempotentRequestOptions,
): MaybePromise<IdempotentRequest | KeyFault | undefined> {
  const { headers } = request;
  const value = headers.get('idempotency-key');
  const key = readIdempotencyKey(value === null ? [] : [value]);
  if (typeof key !== 'string') return key;
  if (key.includes(', ')) {
    return { detail: 'The header Idempotency-Key is given more than once, or has a comma and a space in it.' };
  }
  // Of what came twice, whoever is asked behind the handler may take either.
  if (
    headers
      .get('content-type')
      ?.replace(/"[^"]*"/g, '')
      .includes(',')
  ) {
    return { detail: 'The header Content-Type is given more than once.' };
  }
  return read(request, key, options);
}

/**
 * A gate's `account` that stands in the body: reads a copy of it, and leaves it to the handler untouched (I13). It must be there once, as a JSON
 * property, a form field or a part of a multipart form, and not be empty.
 * @throws BodyError, which the gate answers: 400, 408, 413, 422
 * @example
 * ```ts
 * account: (request) => fieldOfBody(request, 'account_id'),
 * ```
 */
export async function fieldOfBody(request: Request, name: string, options: ReadBodyOptions = {}): Promise<string> {
  const { contentType, contentEncoding } = headOf(request);
  const field = createBodyField({ name, contentType, contentEncoding });
  for (const chunk of await readBody(request, options)) field.write(chunk);
  return field.end();
}

/** No resolver will ask any more. */
export function forgetBody(request: WithBody): void {
  if (request[BODY] !== undefined) request[BODY] = undefined;
}

async function read(
  request: Request,
  key: string,
  { scope, account, secret, settings, ...reading }: IdempotentRequestOptions,
): Promise<IdempotentRequest> {
  const fingerprinter = createFingerprinter(headOf(request), { secret });
  for (const chunk of await readBody(request, reading)) fingerprinter.write(chunk);
  fingerprinter.end();
  const fingerprint = (asked: string | undefined) => fingerprinter.fingerprint(bothAccounts(account, asked));
  return { ...settings, scope, key, fingerprint, signal: request.signal };
}

async function readBody(request: WithBody, options: ReadBodyOptions): Promise<readonly Uint8Array[]> {
  const { maxBytes, idleMs } = checkReadBody(options);
  request[BODY] ??= readClone(request, { maxBytes, idleMs });
  const body = await request[BODY];
  // Whoever asked first may have taken more.
  if (body.reduce((size, chunk) => size + chunk.length, 0) > maxBytes) {
    throw new BodyError(413, 'too_large', `The body has more than ${maxBytes} bytes.`);
  }
  return body;
}

/** The target as it stands in the URL: parsing it would decode, and lose a question mark with nothing behind it. */
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
