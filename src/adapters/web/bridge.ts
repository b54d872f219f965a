import { after, isPromise, type MaybePromise } from '../../base/maybe-promise.ts';
import type { Gate, GateEntry, Passage } from '../../gate/gate.ts';
import type { CapturedResponse, ResponseRecording } from '../../gate/recording.ts';
import type { RejectionError } from '../../gate/rejection-error.ts';
import type { Reply } from '../../http/problem.ts';
import { type HeaderFields, NUMBER_FIELD_NAMES } from '../../http/rate-limit-fields.ts';
import { forgetBody } from '../shared/request.ts';
import { type Captured, captureAnswer } from './capture.ts';
import { checkWebRequest } from './http.ts';
import { createResponse, isResponse, type ResponseBody } from './response.ts';
import { watchedBody } from './watched-body.ts';

// Stored on the request itself: it is the only object that every handler gets.
const PASSAGE = Symbol('headgate.passage');
const FROM_CACHE = Symbol('headgate.fromCache');
/** The status of a gate's own answer, for the gates in front of it. 0: an error handler chooses the status. */
const ANSWER = Symbol('headgate.answer');
/** nginx's status for a client that is gone. No client sees it. */
const CLIENT_GONE = 499;
/** The status of a connection that is a WebSocket from now on. */
export const SWITCHING_PROTOCOLS = 101;
/** Only the gate may say that an answer is a replay. */
const REPLAY_MARKS = ['idempotency-replayed', 'headgate-result'];
const NONE: readonly string[] = [];

type MarkedRequest = Request & { [PASSAGE]?: Passage; [FROM_CACHE]?: boolean; [ANSWER]?: number };

/** Reads results of handlers that are not a `Response`. */
export interface ResultReader {
  /** The status of the response that the framework makes of a returned value. */
  status(value: unknown): number;
  returned(value: unknown): CapturedResponse;
  thrown(thrown: unknown, request: Request): CapturedResponse;
  /** The reason why a response is not the outcome of its request and must not be stored. */
  fault(response: Response): Error | undefined;
  /** The recording of a `Response` that is thrown, so that it is thrown again. */
  ofThrown(recording: ResponseRecording): ResponseRecording;
}

/** One request in a framework of the web, as the gate needs it. */
export interface WebExchange {
  readonly request: Request;
  /** Runs the handler. A result that is not a `Response`, such as undefined after an upgrade, is passed on. */
  proceed(): unknown;
  /**
   * The response after `proceed()`, if the framework keeps it elsewhere than in its result.
   * @default the result of `proceed()`
   */
  readonly response?: (() => unknown) | undefined;
  /**
   * Makes a response of an answer of the gate's own.
   * @default createResponse
   */
  answer?(reply: Reply): unknown;
  /** Passes an error to the framework: see the option `rejection`. Absent if no gate of the adapter throws. */
  reject?: ((error: RejectionError) => unknown) | undefined;
  /** The meaning of results that are not a `Response`. Without it, they are a 500 of the runtime. */
  readonly results?: ResultReader | undefined;
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

function leaveGate(entry: GateEntry, exchange: WebExchange): MaybePromise<unknown> {
  const request: MarkedRequest = exchange.request;
  if (entry.kind === 'answer') {
    const { error, status } = entry.reply;
    if (error === undefined || exchange.reject === undefined) {
      request[ANSWER] = status;
      return answer(entry.reply, exchange);
    }
    request[ANSWER] = 0;
    return exchange.reject(error);
  }
  request[PASSAGE] = entry;
  forgetBody(request, true);
  if (entry.recording !== undefined) return proceedRecorded(entry, entry.recording, exchange);
  // A runtime may leave the body of a client that disconnected unread.
  if (entry.holdsSlot) request.signal?.addEventListener('abort', () => endPassage(entry, exchange), { once: true });
  const failed = (error: unknown): MaybePromise<unknown> => {
    if (isThrownResponse(error, exchange))
      return after(finish(error, entry, exchange), (value) => leave({ value, isThrown: true }));
    const { cooling } = entry.settle({ status: exchange.results?.thrown(error, exchange.request).status ?? 500 });
    endPassage(entry, exchange);
    return after(cooling, () => leave({ value: error, isThrown: true }));
  };
  try {
    const left = after(exchange.proceed(), (value) => finish(responseOf(value, exchange), entry, exchange));
    // Its response may be unusable, such as one whose body was read.
    return isPromise(left) ? left.catch(failed) : left;
  } catch (error) {
    return failed(error);
  }
}

function responseOf(result: unknown, { response }: WebExchange): unknown {
  return response === undefined ? result : response();
}

/** The result of a handler: the value that it returned or threw. */
interface Result {
  readonly value: unknown;
  readonly isThrown: boolean;
}

/** A request is in flight until its whole response is stored, and sent if it is a stream. */
async function proceedRecorded(
  passage: Passage,
  recording: ResponseRecording,
  exchange: WebExchange,
): Promise<unknown> {
  let rest: Promise<void> | undefined;
  const end = (): void => endPassage(passage, exchange);
  try {
    return await runRecorded(passage, recording, exchange, (pending) => {
      rest = pending;
    });
  } finally {
    if (rest === undefined) end();
    else rest.then(end, end);
  }
}

/** @param onRest called with the promise of what continues after the response */
async function runRecorded(
  passage: Passage,
  recording: ResponseRecording,
  exchange: WebExchange,
  onRest: (rest: Promise<void>) => void,
): Promise<unknown> {
  const { request, waitUntil, results } = exchange;
  if (request.signal?.aborted) {
    // The handler did nothing yet, so a retry must be able to run it.
    await passage.abandon();
    return new Response(null, { status: CLIENT_GONE });
  }
  const result = await runHandler(exchange);
  const { value, isThrown } = result;
  if (isThrown ? !isThrownResponse(value, exchange) : !isResponse(value) || isUpgrade(value))
    return storeResult(result, passage, recording, exchange);
  const fault = results?.fault(value as Response);
  if (fault !== undefined) {
    const reply = await recording.fail(fault);
    (request as MarkedRequest)[ANSWER] = reply.status;
    return answer(reply, exchange);
  }
  let response: Response;
  let captured: Captured;
  try {
    response = editHeaders((await settle(value, passage, exchange)) as Response, {}, REPLAY_MARKS);
    const kept = isThrown ? (results?.ofThrown(recording) ?? recording) : recording;
    captured = await captureAnswer(response, kept, request.method !== 'HEAD');
  } catch (error) {
    // The response cannot be read. This is its outcome.
    return storeResult({ value: error, isThrown: true }, passage, recording, exchange);
  }
  const { instead, body, rest } = captured;
  if (rest !== undefined) waitUntil?.(rest);
  if (rest !== undefined) onRest(rest);
  if (instead !== undefined) return answer(instead, exchange);
  return leave({ value: body === undefined ? response : withBody(response, body as ResponseBody), isThrown });
}

async function runHandler(exchange: WebExchange): Promise<Result> {
  try {
    return { value: responseOf(await exchange.proceed(), exchange), isThrown: false };
  } catch (error) {
    return { value: error, isThrown: true };
  }
}

/** Stores the outcome of a handler that returned no response, or threw. */
async function storeResult(
  result: Result,
  passage: Passage,
  recording: ResponseRecording,
  exchange: WebExchange,
): Promise<unknown> {
  const outcome = outcomeOf(result, exchange);
  const isFromCache = (exchange.request as MarkedRequest)[FROM_CACHE] === true;
  const status = result.isThrown ? outcome.status : settledStatus(result.value, exchange);
  const { cooling } = passage.settle({ status, cached: isFromCache });
  const instead = await recording.store(outcome);
  await cooling;
  return instead === undefined ? leave(result) : answer(instead, exchange);
}

function outcomeOf({ value, isThrown }: Result, { results, request }: WebExchange): CapturedResponse {
  if (isThrown) return results?.thrown(value, request) ?? withoutBody(500);
  return isResponse(value) || results === undefined ? withoutBody(statusOf(value)) : results.returned(value);
}

/** Returns or throws the value, as the handler did. */
function leave({ value, isThrown }: Result): unknown {
  if (isThrown) throw value;
  return value;
}

/**
 * Some frameworks take a `Response` that is thrown for the response. An error is never a response, whatever its
 * properties.
 */
function isThrownResponse(thrown: unknown, { results }: WebExchange): thrown is Response {
  return results !== undefined && isResponse(thrown) && !(thrown instanceof Error);
}

function withoutBody(status: number): CapturedResponse {
  return { status, fields: [], body: undefined };
}

function answer(reply: Reply, exchange: WebExchange): unknown {
  return exchange.answer === undefined ? createResponse(reply, exchange.request.method) : exchange.answer(reply);
}

/** Settles a passage, and ends it when the body of the response was read to its end, or will be read no more. */
function finish(value: unknown, passage: Passage, exchange: WebExchange): MaybePromise<unknown> {
  const settled = settle(value, passage, exchange);
  return passage.holdsSlot ? after(settled, (response) => endWithBody(response, passage, exchange)) : settled;
}

function endWithBody(response: unknown, passage: Passage, exchange: WebExchange): unknown {
  const { method } = exchange.request;
  const end = (): void => endPassage(passage, exchange);
  const body = isResponse(response) && !isUpgrade(response) && method !== 'HEAD' ? response.body : null;
  if (body === null || body.locked) {
    end();
    return response;
  }
  return withBody(response as Response, watchedBody(body, end));
}

/** The work of ending it may continue after the response. */
function endPassage(passage: Passage, { waitUntil }: WebExchange): void {
  if (!passage.holdsSlot) return;
  const ending = passage.end?.();
  if (isPromise(ending)) waitUntil?.(ending);
}

/**
 * Settles a passage now that its response is known, and adds the gate's fields to the response. A refusal of the provider
 * leaves once its pause is stored, so that no other process lets a request of its client through (S30).
 */
function settle(response: unknown, passage: Passage, exchange: WebExchange): MaybePromise<unknown> {
  const request: MarkedRequest = exchange.request;
  const status = settledStatus(response, exchange);
  const { headers, stripRateLimit, cooling } = passage.settle({
    status,
    cached: request[FROM_CACHE] === true,
    fromGate: request[ANSWER] === 0 || request[ANSWER] === status,
    header: (name) => (isResponse(response) ? (response.headers.get(name) ?? undefined) : undefined),
  });
  if (!isResponse(response) || isUpgrade(response)) return response;
  const edited = editHeaders(response, headers, stripRateLimit ? NUMBER_FIELD_NAMES : NONE);
  return after(cooling, () => edited);
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

/** The copy gets its own headers: Hono's server, for one, would share the given ones, immutable or not. */
function withBody({ status, statusText, headers }: Response, body: ResponseBody): Response {
  return new Response(body, { status, statusText, headers: new Headers(headers) });
}

/** A handler that returns no valid `Response` becomes a 500 in its runtime. */
function statusOf(response: unknown): number {
  return isResponse(response) && response.status !== 0 ? response.status : 500;
}

/**
 * The status of the response that the client gets. Only after an upgrade does a handler return nothing, or status 0.
 */
function settledStatus(value: unknown, { results }: WebExchange): number {
  if (isResponse(value)) return isUpgrade(value) ? SWITCHING_PROTOCOLS : value.status;
  if (results !== undefined) return results.status(value);
  return value === undefined ? SWITCHING_PROTOCOLS : 500;
}

function isUpgrade({ status }: Response): boolean {
  return status === 101 || status === 0;
}
