import { OptionError, SubjectError } from '../../base/errors.ts';
import { checkOneOf, checkOptions, isPlainObject } from '../../base/options.ts';
import { DISPATCHES, type IdempotentRequest } from '../../gate/idempotent-request.ts';
import { BodySize, DEFAULT_IDLE_MS } from '../../http/body-limits.ts';
import { comparedFields, isFieldName, MAX_COMPARED } from '../../http/compared-fields.ts';
import { createBodyField } from '../../http/field/body-field.ts';
import { createFingerprinter, type RequestHead } from '../../http/fingerprint/fingerprint.ts';
import { inSlices } from '../../http/in-slices.ts';

const READ_OPTIONS = ['maxBytes', 'idleMs'];
const REQUEST_OPTIONS = ['scope', 'account', 'compares', 'dispatch', 'secret', 'settings', ...READ_OPTIONS];
const NOT_FIELDS = `must be a list of up to ${MAX_COMPARED} names of header fields`;
/** Longer delays make a timer fire at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** How a body is read. */
export interface ReadBodyOptions {
  /**
   * Longest body, in bytes; a longer one is rejected with 413. The body is buffered in memory until your handler has
   * read it.
   * @default 1_048_576
   */
  readonly maxBytes?: number | undefined;
  /**
   * Longest wait for the next piece of the body, in milliseconds; after it the request is rejected with 408.
   * @default 30_000
   */
  readonly idleMs?: number | undefined;
}

/** Options of `idempotentRequest`. */
export interface IdempotentRequestOptions extends ReadBodyOptions {
  /** The caller's application, from your authentication: the same key of two applications is two keys (I2). */
  readonly scope: string;
  /**
   * Other parts of a request that say for whom it is, beside the gate's `account`, the URL and the body: for example
   * another header. The same key with another value is another request, and is rejected with 409 (I2).
   */
  readonly account?: string | undefined;
  /**
   * Names of header fields that say who sends the request, such as `authorization` or `cookie`. The same key with another
   * value is another request, and is rejected with 409 (I2). Needs `secret`; no value is stored.
   * @default none: a second user with the same scope, key and request gets the first one's response
   */
  readonly compares?: readonly string[] | undefined;
  /**
   * `explicit`: the handler calls `dispatch()` of its passage just before its effect, so that its death before that frees
   * the key.
   * @default 'automatic'
   */
  readonly dispatch?: IdempotentRequest['dispatch'];
  /**
   * Key of an HMAC for the fingerprint, not empty. Without it, anyone who can read the store can test guesses about a
   * request.
   * @default plain SHA-256
   */
  readonly secret?: string | Uint8Array | undefined;
  /** Settings for these requests, in place of `createIdempotency`'s settings. */
  readonly settings?: Omit<IdempotentRequest, 'scope' | 'key' | 'fingerprint' | 'signal' | 'dispatch'> | undefined;
}

/** {@link ReadBodyOptions} with the defaults. */
export interface BodyLimits {
  readonly maxBytes: number;
  readonly idleMs: number;
}

/** The pieces of a body. */
export type Chunks = readonly Uint8Array[];

// On the platform's request, for every resolver that needs the body: it can be read only once.
const BODY = Symbol('headgate.body');
/** A gate that is still to come needs the body, although one passed. */
const KEPT = Symbol('headgate.bodyKept');

interface WithBody {
  [KEPT]?: boolean;
  [BODY]?: Promise<Chunks> | undefined;
}

/** A request of Node or of the web, as the functions below need it. */
export interface ReadableRequest {
  /** The request of the platform. */
  readonly message: object;
  head(): RequestHead;
  /** The value of a header field; of a field that is given twice, both. The name is in lower case. */
  field(name: string): string | undefined;
  read(limits: BodyLimits): Promise<Chunks>;
}

/**
 * Reads a body once for all resolvers; {@link forgetBody} releases it.
 * @throws OptionError
 * @throws BodyError
 */
export async function readBody(request: ReadableRequest, options: ReadBodyOptions = {}): Promise<Chunks> {
  const limits = checkReadBody(options);
  const message: WithBody = request.message;
  message[BODY] ??= request.read(limits);
  const chunks = await message[BODY];
  // The resolver that read the body may have allowed more bytes than this one.
  const size = new BodySize(limits.maxBytes);
  for (const chunk of chunks) size.add(chunk.length);
  return chunks;
}

/** Keeps the body until a gate used it for a key: gates in front of that one, and parsers, must not release it. */
export function keepBody(message: object & WithBody): void {
  message[KEPT] = true;
}

/**
 * Releases the body when all resolvers of a gate ran.
 * @param isUsed whether the gate used it for a key, so that no other gate needs it
 */
export function forgetBody(message: object & WithBody, isUsed: boolean): void {
  if (message[BODY] !== undefined && (isUsed || message[KEPT] !== true)) message[BODY] = undefined;
}

/** @throws BodyError */
export async function readField(request: ReadableRequest, name: string, options?: ReadBodyOptions): Promise<string> {
  const { contentType, contentEncoding } = request.head();
  const field = createBodyField({ name, contentType, contentEncoding });
  await inSlices(await readBody(request, options), (slice) => field.write(slice));
  return field.end();
}

/**
 * The result of the `idempotent` resolver for a request with this key.
 * @throws BodyError
 */
export async function readIdempotentRequest(
  request: ReadableRequest,
  key: string,
  signal: AbortSignal,
  { scope, account, compares = [], dispatch, secret, settings, ...reading }: IdempotentRequestOptions,
): Promise<IdempotentRequest> {
  const compared = comparedFields(compares, (name) => request.field(name));
  const fingerprinter = createFingerprinter({ compares: compared, ...request.head() }, { secret });
  await inSlices(await readBody(request, reading), (slice) => fingerprinter.write(slice));
  fingerprinter.end();
  const fingerprint = (ofGate: string | undefined) => fingerprinter.fingerprint(bothAccounts(account, ofGate));
  return { scope, key, fingerprint, signal, dispatch, ...settings };
}

/**
 * Checks the options of `idempotentRequest` before anything is read of the request, so that a mistake shows with the
 * first request, and not only with the first key.
 * @throws OptionError
 */
export function checkRequestOptions(options: IdempotentRequestOptions): void {
  checkOptions(options, REQUEST_OPTIONS, 'options');
  const { account, settings, compares = [], dispatch = 'automatic', secret } = options;
  // As JSON, every promise and every map would be the same account.
  if (account !== undefined && typeof account !== 'string') throw new SubjectError('account', account);
  if (settings !== undefined && !isPlainObject(settings))
    throw new OptionError('options.settings', settings, 'must be a plain object');
  checkOneOf('options.dispatch', dispatch, DISPATCHES);
  if (!Array.isArray(compares) || !compares.every(isFieldName) || compares.length > MAX_COMPARED)
    throw new OptionError('options.compares', compares, NOT_FIELDS);
  if (compares.length > 0 && secret === undefined)
    throw new OptionError('options.secret', secret, 'must be given with compares, so that no reader can guess a value');
}

/**
 * Fills in the defaults. A limit that is not a number would be no limit at all, so it is rejected.
 * @throws OptionError
 */
export function checkReadBody(options: ReadBodyOptions): BodyLimits {
  checkOptions(options, READ_OPTIONS, 'options');
  const { maxBytes = 1_048_576, idleMs = DEFAULT_IDLE_MS } = options;
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0)
    throw new OptionError('maxBytes', maxBytes, 'must be a whole number of bytes, 0 or more');
  if (!Number.isSafeInteger(idleMs) || idleMs < 1 || idleMs > LONGEST_DELAY_MS)
    throw new OptionError('idleMs', idleMs, `must be a whole number of milliseconds, 1 to ${LONGEST_DELAY_MS}`);
  return { maxBytes, idleMs };
}

/** One text for both accounts, in which neither can pass for the other. */
function bothAccounts(given: string | undefined, ofGate: string | undefined): string | undefined {
  return given === undefined ? ofGate : JSON.stringify([given, ofGate]);
}
