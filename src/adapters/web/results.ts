import { OptionError } from '../../base/errors.ts';
import { isPlainObject } from '../../base/options.ts';
import type { CapturedResponse } from '../../gate/recording.ts';
import type { Reply } from '../../http/problem.ts';
import { createResponse } from './response.ts';

/*
 * Values that handlers return and throw in place of a `Response`: data of an action, and the errors and redirects of
 * frameworks. A framework makes a response of them behind the gate, so the gate must know their meaning.
 */

/**
 * Field of a stored response that is not returned as a `Response`: `data` is its JSON, `thrown-data` too, but thrown,
 * and `thrown` is a `Response` to throw.
 */
export const RESULT_FIELD = 'headgate-result';
const NO_BODY = new Uint8Array(0);
/** Next.js reads them from the response of a middleware, and never sends them. */
const FIELDS_OF_MIDDLEWARE = ['x-middleware-next', 'x-middleware-rewrite'];
const NO_OUTCOME =
  'a response that lets the request pass is no outcome, so the key was released: use a gate without idempotency in ' +
  'proxy.ts/middleware, and one with keys in the route handler';

/**
 * The status of data that a handler returned: the status of `data()` of React Router, and of an instance of a class
 * that has one. Of any other value it is 200.
 */
export function returnedStatus(value: unknown): number {
  try {
    const { init, status } = Object(value) as Record<string, unknown>;
    if (isReactRouterData(value)) return (Object(init) as ResponseInit).status ?? 200;
    // Plain data may contain a property of this name; an instance of a class is a result with a status.
    return !isPlainObject(value) && isErrorStatus(status) ? status : 200;
  } catch {
    // The value cannot be read. It is still the handler's result.
    return 200;
  }
}

/** Stores data that a handler returned; if JSON cannot express it, only its status is stored. */
export function returnedOutcome(value: unknown): CapturedResponse {
  const status = returnedStatus(value);
  try {
    const data = withPlainFields(value);
    if (isJson(data)) {
      const text = data === undefined ? '' : JSON.stringify(data);
      return { status, fields: [RESULT_FIELD, 'data'], body: new TextEncoder().encode(text) };
    }
  } catch {
    // The value cannot be read.
  }
  return { status, fields: [], body: undefined };
}

/**
 * The response that the framework makes of a thrown value: `error()` and `redirect()` of SvelteKit, `notFound()`,
 * `forbidden()` and `redirect()` of Next.js. Of any other value only the status is known: its `status` or `statusCode`,
 * or else 500.
 */
export function thrownOutcome(thrown: unknown, request: Request): CapturedResponse {
  if (isReactRouterData(thrown)) {
    const { fields, ...outcome } = returnedOutcome(thrown);
    return { ...outcome, fields: fields.length === 0 ? [] : [RESULT_FIELD, 'thrown-data'] };
  }
  const { status, statusCode, location, body, digest } = Object(thrown) as Record<string, unknown>;
  const next = typeof digest === 'string' ? outcomeOfDigest(digest, request) : undefined;
  if (next !== undefined) return next;
  const known = [status, statusCode].find(isErrorStatus) ?? 500;
  if (typeof location === 'string' && known < 400)
    return { status: known, fields: ['location', location], body: NO_BODY };
  if (!(thrown instanceof Error) && isPlainObject(body) && isJson(body)) {
    const json = new TextEncoder().encode(JSON.stringify(body));
    return { status: known, fields: ['content-type', 'application/json'], body: json };
  }
  return { status: known, fields: [], body: undefined };
}

/**
 * An answer of the gate itself, or a value that a handler once returned in place of a response.
 * @throws Response or data that a handler once threw
 */
export function replayResult(reply: Reply, method: string): unknown {
  const { [RESULT_FIELD]: kind, ...headers } = reply.headers;
  if (kind === undefined) return createResponse(reply, method);
  if (kind === 'thrown') throw createResponse({ ...reply, headers }, method);
  const text = new TextDecoder().decode(reply.body as Uint8Array);
  const data = text === '' ? undefined : JSON.parse(text);
  if (kind === 'thrown-data') throw data;
  return data;
}

/**
 * The fault of a response to a request with an idempotency key: by `NextResponse.next()` and `rewrite()`, Next.js
 * lets another server answer the request. So it is not an outcome. If it were stored, every retry would be executed
 * there again, marked as a replay.
 */
export function faultOfMiddleware({ headers }: Response): OptionError | undefined {
  // Data of an action may look like a response.
  const field = FIELDS_OF_MIDDLEWARE.find((name) => headers?.has?.(name) === true);
  if (field === undefined) return undefined;
  return new OptionError('idempotency', field, NO_OUTCOME, `a response with ${field}`);
}

/** Next.js writes the meaning of an error into its digest: `NEXT_REDIRECT;replace;/login;307;`. */
function outcomeOfDigest(digest: string, request: Request): CapturedResponse | undefined {
  const parts = digest.split(';');
  const [kind] = parts;
  if (kind === 'NEXT_NOT_FOUND') return { status: 404, fields: [], body: NO_BODY };
  const status = Number(kind === 'NEXT_REDIRECT' ? parts.at(-2) : parts[1]);
  if (!isErrorStatus(status)) return undefined;
  if (kind === 'NEXT_HTTP_ERROR_FALLBACK') return { status, fields: [], body: NO_BODY };
  if (kind !== 'NEXT_REDIRECT') return undefined;
  // The address may contain semicolons.
  const fields = ['location', parts.slice(2, -2).join(';')];
  return { status: isServerAction(request) ? 303 : status, fields, body: NO_BODY };
}

/** Whether Next.js takes a request for a possible call of a server action: then it redirects with 303. */
function isServerAction({ method, headers }: Request): boolean {
  const type = headers.get('content-type') ?? '';
  // As Next.js compares it: a type with a charset is another type.
  const isForm = type === 'application/x-www-form-urlencoded' || type.startsWith('multipart/form-data');
  return method === 'POST' && (isForm || headers.has('next-action'));
}

/** Whether a value is `data()` of React Router, which recognises it by its properties. */
function isReactRouterData(value: unknown): boolean {
  return (Object(value) as Record<string, unknown>).type === 'DataWithResponseInit';
}

/**
 * `data()` of React Router can contain `Headers`, which JSON does not express. Any other value is returned as it is.
 */
function withPlainFields(value: unknown): unknown {
  const { type, data, init } = Object(value) as Record<string, unknown>;
  if (!isReactRouterData(value)) return value;
  const headers = [...new Headers((Object(init) as ResponseInit).headers)];
  return { type, data, init: { ...Object(init), headers } };
}

function isErrorStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 300 && (status as number) <= 599;
}

/** Whether JSON expresses the whole value. Undefined is left out of objects, where it makes no difference. */
function isJson(value: unknown): boolean {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  try {
    if (Array.isArray(value)) return value.every((item) => item !== undefined && isJson(item));
    return isPlainObject(value) && Object.values(value).every(isJson);
  } catch {
    // The value contains itself, or cannot be read.
    return false;
  }
}
