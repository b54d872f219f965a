import { after, isPromise } from '../../core/maybe-promise.ts';
import type { MaybePromise } from '../../core/ports.ts';
import type { Entry, Gate, Passage } from '../../gate/gate.ts';
import type { Recording } from '../../gate/recording.ts';
import type { Reply } from '../../http/problem.ts';
import { type HeaderFields, RATE_LIMIT_FIELD_NAMES } from '../../http/rate-limit-fields.ts';
import { replyFields } from '../shared/reply.ts';
import { forgetBody } from '../shared/request.ts';
import { type Captured, captureAnswer } from './capture.ts';
import { checkWebRequest } from './http.ts';

// Stored on the request itself: it is the only object that every handler has.
const PASSAGE = Symbol('headgate.passage');
const FROM_CACHE = Symbol('headgate.fromCache');
/** The status of a gate's own answer, for the gates in front of it. */
const ANSWER = Symbol('headgate.answer');
/** nginx's status for a client that is gone. No client sees it. */
const CLIENT_GONE = 499;
/** Only the gate may say that an answer is a replay. */
const REPLAY_MARK = ['idempotency-replayed'];
const NONE: readonly string[] = [];

type MarkedRequest = Request & { [PASSAGE]?: Passage; [FROM_CACHE]?: boolean; [ANSWER]?: number };
type ResponseBody = ConstructorParameters<typeof Response>[0];

/** One request in a framework of the web, as the gate needs it. */
export interface WebExchange {
  readonly request: Request;
  /** Runs the handler. A result that is not a `Response`, such as undefined after an upgrade, is passed on. */
  proceed(): unknown;
  /**
   * Makes a response of an answer of the gate's own.
   * @default createResponse
   */
  answer?(reply: Reply): Response;
  /** Keeps the runtime alive until work that continues after the response is done. */
  waitUntil?: ((promise: Promise<unknown>) => void) | undefined;
}

/** Call it before the handler returns if a cache answers the request: the charge is refunded (S12). */
export function servedFromCache(request: Request): void {
  checkWebRequest(request);
  (request as MarkedRequest)[FROM_CACHE] = true;
}

/** The passage of this request: its `decision`, and `abandon()` if the request never reached the provider. */
export function passageOf(request: Request): Passage | undefined {
  checkWebRequest(request);
  return (request as MarkedRequest)[PASSAGE];
}

/** Takes a request through a gate. Synchronous if the gate and the handler are. */
export function enterGate<Subject>(
  gate: Gate<Subject>,
  subject: Subject,
  exchange: WebExchange,
): MaybePromise<unknown> {
  return after(gate.enter(subject, undefined, (exchange.request as MarkedRequest)[PASSAGE]), (entry) =>
    leaveGate(entry, exchange),
  );
}

/** An answer of the gate's own to a request with this method. */
export function createResponse(reply: Reply, method: string): Response {
  const { status, headers, body } = responseParts(reply, method);
  const all = new Headers();
  for (const name of Object.keys(headers)) {
    for (const value of [headers[name] ?? []].flat()) all.append(name, value);
  }
  return new Response(body as ResponseBody, { status, headers: all });
}

/** A reply in the form that `Response` accepts: the body is null if the response must not have one. */
export function responseParts(
  { status, headers, body }: Reply,
  method: string,
): Omit<Reply, 'body'> & { readonly body: Reply['body'] | null } {
  // Some servers add a text type to a body that is empty but not null.
  const isBodyless = body.length === 0 || method === 'HEAD' || [101, 204, 205, 304].includes(status);
  return { status, headers: replyFields(headers, method), body: isBodyless ? null : body };
}

function leaveGate(entry: Entry, exchange: WebExchange): MaybePromise<unknown> {
  const request: MarkedRequest = exchange.request;
  if (entry.kind === 'answer') {
    request[ANSWER] = entry.reply.status;
    return answer(entry.reply, exchange);
  }
  request[PASSAGE] = entry;
  forgetBody(request);
  if (entry.recording !== undefined) return proceedRecorded(entry, entry.recording, exchange);
  const failed = (error: unknown): never => {
    entry.settle({ status: 500 });
    throw error;
  };
  try {
    const response = exchange.proceed();
    return isPromise(response)
      ? response.then((settled) => settle(settled, entry, request), failed)
      : settle(response, entry, request);
  } catch (error) {
    return failed(error);
  }
}

async function proceedRecorded(passage: Passage, recording: Recording, exchange: WebExchange): Promise<unknown> {
  const { request, waitUntil } = exchange;
  if (request.signal?.aborted) {
    // The handler has done nothing yet, so a retry must be able to run it.
    await passage.abandon();
    return new Response(null, { status: CLIENT_GONE });
  }
  const storeWithoutBody = (status: number): Promise<Reply | undefined> =>
    recording.store({ status, fields: [], body: undefined });
  let response: unknown;
  let captured: Captured | undefined;
  try {
    response = settle(await exchange.proceed(), passage, request);
    if (isResponse(response) && !isUpgrade(response)) {
      response = editHeaders(response, {}, REPLAY_MARK);
      captured = await captureAnswer(response as Response, recording, request.method !== 'HEAD');
    }
  } catch (error) {
    // The handler threw, or its response cannot be read. Both are its outcome.
    passage.settle({ status: 500 });
    const instead = await storeWithoutBody(500);
    if (instead === undefined) throw error;
    return answer(instead, exchange);
  }
  if (captured === undefined) {
    await storeWithoutBody(statusOf(response));
    return response;
  }
  const { instead, body, rest } = captured;
  if (rest !== undefined) waitUntil?.(rest);
  if (instead !== undefined) return answer(instead, exchange);
  return body === undefined ? response : withBody(response as Response, body as ResponseBody);
}

function answer(reply: Reply, exchange: WebExchange): Response {
  return exchange.answer?.(reply) ?? createResponse(reply, exchange.request.method);
}

/** Settles a passage now that its response is known, and adds the gate's fields to the response. */
function settle(response: unknown, passage: Passage, request: MarkedRequest): unknown {
  const status = statusOf(response);
  const { headers, stripRateLimit } = passage.settle({
    status,
    cached: request[FROM_CACHE] === true,
    fromGate: request[ANSWER] === status,
    header: status === 429 ? (name) => (response as Response).headers.get(name) ?? undefined : undefined,
  });
  if (!isResponse(response) || isUpgrade(response)) return response;
  return editHeaders(response, headers, stripRateLimit ? RATE_LIMIT_FIELD_NAMES : NONE);
}

/** Sets and removes fields. An immutable response, such as a redirect or a result of `fetch()`, is copied. */
function editHeaders(response: Response, set: HeaderFields, remove: readonly string[]): Response {
  try {
    edit(response.headers, set, remove);
    return response;
  } catch {
    const copy = withBody(response, response.body);
    edit(copy.headers, set, remove);
    return copy;
  }
}

function edit(headers: Headers, set: HeaderFields, remove: readonly string[]): void {
  for (const name in set) headers.set(name, set[name] as string);
  for (const name of remove) if (headers.has(name)) headers.delete(name);
}

/** The copy gets headers of its own: Hono's server, for one, would share the given ones, immutable or not. */
function withBody({ status, statusText, headers }: Response, body: ResponseBody): Response {
  return new Response(body, { status, statusText, headers: new Headers(headers) });
}

/** A handler that returns no valid `Response` becomes a 500 in its runtime. */
function statusOf(response: unknown): number {
  return isResponse(response) && response.status !== 0 ? response.status : 500;
}

function isUpgrade({ status }: Response): boolean {
  return status === 101 || status === 0;
}

/** Checks the shape: a runtime, a polyfill or a test may have another class. */
function isResponse(value: unknown): value is Response {
  return typeof value === 'object' && value !== null && 'status' in value && 'headers' in value && 'body' in value;
}
