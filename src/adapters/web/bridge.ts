import type { MaybePromise } from '../../core/ports.ts';
import type { Entry, Gate, Passage } from '../../gate/gate.ts';
import type { Recording } from '../../gate/recording.ts';
import type { Reply } from '../../http/problem.ts';
import { type HeaderFields, RATE_LIMIT_FIELD_NAMES } from '../../http/rate-limit-fields.ts';
import { type Captured, captureAnswer } from './capture.ts';
import { forgetBody } from './request.ts';

/** On the request itself, which is all that a handler always has. */
const PASSAGE = Symbol('headgate.passage');
const FROM_CACHE = Symbol('headgate.fromCache');
/** nginx's word for it: nobody will see it. */
const CLIENT_GONE = 499;
const MARK = ['idempotency-replayed'];
const NONE: readonly string[] = [];

type Noted = Request & { [PASSAGE]?: Passage; [FROM_CACHE]?: boolean };
type BodyOfResponse = ConstructorParameters<typeof Response>[0];

/** One exchange of a framework, as the bridge needs it. */
export interface WebExchange {
  readonly request: Request;
  /** The way to the handler. What is no `Response`, such as the nothing behind an upgrade, is passed on as it is. */
  go(): unknown;
  /**
   * Makes an answer of the gate's own.
   * @default responseOf
   */
  answer?(reply: Reply): Response;
  /** Keeps the runtime from stopping what goes on after the answer. */
  waitUntil?: ((promise: Promise<unknown>) => void) | undefined;
}

/** Says, before the handler returns, that a cache answers this request after all: its charge is taken back (S12). */
export function servedFromCache(request: Request): void {
  (request as Noted)[FROM_CACHE] = true;
}

/** The passage of this request: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf(request: Request): Passage | undefined {
  return (request as Noted)[PASSAGE];
}

/** Takes an exchange through a gate. At once where everything on the way answers at once. */
export function enterGate<Subject>(
  gate: Gate<Subject>,
  subject: Subject,
  exchange: WebExchange,
): MaybePromise<unknown> {
  const entry = gate.enter(subject, undefined, passageOf(exchange.request));
  return 'kind' in entry ? proceed(entry, exchange) : entry.then((entered) => proceed(entered, exchange));
}

/** An answer of the gate's own. */
export function responseOf(reply: Reply, method: string): Response {
  const { status, headers, body } = partsOf(reply, method);
  const all = new Headers();
  for (const name of Object.keys(headers)) {
    for (const value of [headers[name] ?? []].flat()) all.append(name, value);
  }
  return new Response(body as BodyOfResponse, { status, headers: all });
}

/** A reply as `Response` takes it: without a body where there may be none. Of an answer to HEAD nobody knows how long its body would have been. */
export function partsOf(
  { status, headers, body }: Reply,
  method: string,
): Omit<Reply, 'body'> & { readonly body: Reply['body'] | null } {
  const { 'content-length': length, ...others } = headers;
  // Of an empty body some servers think that it is text.
  const isBodyless = body.length === 0 || method === 'HEAD' || [101, 204, 205, 304].includes(status);
  return {
    status,
    headers: method === 'HEAD' && length === '0' ? others : headers,
    body: isBodyless ? null : body,
  };
}

function proceed(entry: Entry, exchange: WebExchange): MaybePromise<unknown> {
  const { request, go } = exchange;
  if (entry.kind === 'answer') return exchange.answer?.(entry.reply) ?? responseOf(entry.reply, request.method);
  (request as Noted)[PASSAGE] = entry;
  forgetBody(request);
  if (entry.recording !== undefined) return proceedKept(entry, entry.recording, exchange);
  const failed = (error: unknown): never => {
    entry.settle({ status: 500 });
    throw error;
  };
  try {
    const answer = go();
    return isPromise(answer)
      ? answer.then((response) => settled(response, entry, request), failed)
      : settled(answer, entry, request);
  } catch (error) {
    return failed(error);
  }
}

async function proceedKept(passage: Passage, recording: Recording, exchange: WebExchange): Promise<unknown> {
  const { request, go, waitUntil } = exchange;
  if (request.signal?.aborted) {
    // Nothing was done for it yet: its retry is to do it.
    await passage.abandon();
    return new Response(null, { status: CLIENT_GONE });
  }
  const answer = (reply: Reply): Response => exchange.answer?.(reply) ?? responseOf(reply, request.method);
  const unkept = (status: number): Promise<Reply | undefined> =>
    recording.store({ status, fields: [], body: undefined });
  let response: unknown;
  let captured: Captured | undefined;
  try {
    response = settled(await go(), passage, request);
    if (isResponse(response) && !isUpgrade(response)) {
      // The mark is the gate's alone to give.
      response = edited(response, {}, MARK);
      captured = await captureAnswer(response as Response, recording, request.method !== 'HEAD');
    }
  } catch (error) {
    // Thrown by the handler, or by what it gave as its answer: its outcome either way.
    passage.settle({ status: 500 });
    const instead = await unkept(500);
    if (instead === undefined) throw error;
    return answer(instead);
  }
  if (captured === undefined) {
    await unkept(statusOf(response));
    return response;
  }
  const { instead, body, rest } = captured;
  if (rest !== undefined) waitUntil?.(rest);
  if (instead !== undefined) return answer(instead);
  return body === undefined ? response : withBody(response as Response, body as BodyOfResponse);
}

/** Settles a passage as its answer is known, and puts our fields on it. */
function settled(response: unknown, passage: Passage, request: Noted): unknown {
  const outcome = { status: statusOf(response), cached: request[FROM_CACHE] === true };
  const { headers, stripRateLimit } = passage.settle(outcome);
  if (!isResponse(response) || isUpgrade(response)) return response;
  return edited(response, headers, stripRateLimit ? RATE_LIMIT_FIELD_NAMES : NONE);
}

/** With fields set, or taken off. In place where that can be: what a redirect or `fetch()` gives is immutable. */
function edited(response: Response, set: HeaderFields, off: readonly string[]): Response {
  try {
    edit(response.headers, set, off);
    return response;
  } catch {
    const copy = withBody(response, response.body);
    edit(copy.headers, set, off);
    return copy;
  }
}

function edit(headers: Headers, set: HeaderFields, off: readonly string[]): void {
  for (const name in set) headers.set(name, set[name] as string);
  for (const name of off) if (headers.has(name)) headers.delete(name);
}

/** With headers of its own: the server of Hono, for one, would go on with those it is given, immutable or not. */
function withBody({ status, statusText, headers }: Response, body: BodyOfResponse): Response {
  return new Response(body, { status, statusText, headers: new Headers(headers) });
}

/** Of what is no answer at all, the error that its runtime will make of it. */
function statusOf(response: unknown): number {
  return isResponse(response) && response.status !== 0 ? response.status : 500;
}

function isUpgrade({ status }: Response): boolean {
  return status === 101 || status === 0;
}

/** By its shape: a runtime, a polyfill or a test may have another class. */
function isResponse(value: unknown): value is Response {
  return typeof value === 'object' && value !== null && 'status' in value && 'headers' in value && 'body' in value;
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as { then?: unknown } | undefined)?.then === 'function';
}
