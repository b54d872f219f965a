import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MaybePromise } from '../core/ports.ts';
import type { Entry, Gate, Keeping, Passage } from '../gate/exchange.ts';
import type { Reply } from '../http/problem.ts';
import { AnswerCapture } from './node-capture.ts';
import { type HeadersInput, settleHead } from './node-head.ts';

export { type IdempotentRequestOptions, idempotentRequest } from './node-idempotent.ts';

/** Connect style: works with `connect`, and by hand in front of any `node:http` handler. */
export type NodeMiddleware<Request extends IncomingMessage = IncomingMessage> = (
  request: Request,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => void;

/** A `node:http` request listener. */
export type NodeHandler<Request extends IncomingMessage = IncomingMessage> = (
  request: Request,
  response: ServerResponse,
) => void;

/** On the response itself rather than in a WeakMap: one of those for each request is work for the garbage collector. */
const PASSAGE = Symbol('headgate.passage');
const FROM_CACHE = Symbol('headgate.fromCache');

type Response = ServerResponse & { [PASSAGE]?: Passage; [FROM_CACHE]?: boolean };

/**
 * Mounts a gate as middleware.
 * @example
 * ```ts
 * app.use(headgate(gate));
 * ```
 */
export function headgate<Request extends IncomingMessage>(gate: Gate<Request>): NodeMiddleware<Request> {
  return (request, response, next) => enter(gate, request, response, next);
}

/**
 * Puts a gate in front of one `node:http` handler.
 * @example
 * ```ts
 * createServer(withHeadgate(gate, (request, response) => response.end('sent')));
 * ```
 */
export function withHeadgate<Request extends IncomingMessage>(
  gate: Gate<Request>,
  handler: NodeHandler<Request>,
): NodeHandler<Request> {
  return (request, response) => enter(gate, request, response, () => handler(request, response));
}

/** Says, before the head is written, that a cache answers this request after all: its charge is taken back (S12). */
export function servedFromCache(response: ServerResponse): void {
  (response as Response)[FROM_CACHE] = true;
}

/** The passage of the request behind this response: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf(response: ServerResponse): Passage | undefined {
  return (response as Response)[PASSAGE];
}

/** @param go the handler, or the way to it */
function enter<Request extends IncomingMessage>(
  gate: Gate<Request>,
  request: Request,
  response: Response,
  go: () => unknown,
): void {
  whenEntered(gate.enter(request), (entry) => {
    if (entry.kind === 'answer') return send(response, entry.reply);
    response[PASSAGE] = entry;
    if (entry.keeping !== undefined) return goCaptured(response, entry, entry.keeping, go);
    capture(response, entry);
    go();
  });
}

function whenEntered(entry: MaybePromise<Entry>, go: (entry: Entry) => void): void {
  if ('kind' in entry) go(entry);
  else void entry.then(go);
}

function send(response: ServerResponse, { status, headers, body }: Reply): void {
  // The client may have gone, or something in front of us may have answered, while the gate was asking its store.
  if (response.headersSent || response.writableEnded) return;
  const { 'content-length': length, ...others } = headers;
  // Of an answer to HEAD nobody knows how long its body would have been.
  const isUnknown = response.req.method === 'HEAD' && length === '0';
  response.writeHead(status, isUnknown ? others : headers).end(body);
}

/** The handler's answer is kept, whatever becomes of the client. */
function goCaptured(response: Response, passage: Passage, keeping: Keeping, go: () => unknown): void {
  // Nobody waits for this answer any more, and nothing was done for it yet: its retry is to do it.
  if (response.headersSent || response.writableEnded || response.destroyed) return void passage.abandon();
  const answer = new AnswerCapture(response, passage, keeping, () => response[FROM_CACHE] === true);
  try {
    const running = go();
    if (running instanceof Promise) {
      void running.catch((error: unknown) => {
        answer.fail();
        // Noted, not handled: it surfaces where it would have without us.
        throw error;
      });
    }
  } catch (error) {
    answer.fail();
    throw error;
  }
}

/** Adds our fields when the head is written. */
function capture(response: Response, passage: Passage): void {
  const writeHead = response.writeHead as (status: number, ...rest: unknown[]) => ServerResponse;
  const capturing = (status: number, first?: string | HeadersInput, second?: HeadersInput) => {
    response.writeHead = writeHead;
    const outcome = { status: Number(status), cached: response[FROM_CACHE] === true };
    const all = settleHead(response, passage, outcome, first, second);
    return typeof first === 'string'
      ? writeHead.call(response, status, first, all)
      : writeHead.call(response, status, all);
  };
  response.writeHead = capturing as typeof response.writeHead;
}
