import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { MaybePromise } from '../core/ports.ts';
import type { Entry, Gate, Passage } from '../gate/exchange.ts';
import type { Reply } from '../http/problem.ts';
import { type HeaderFields, RATE_LIMIT_FIELD_NAMES } from '../http/rate-limit-fields.ts';

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
  return (request, response, next) => {
    whenEntered(gate.enter(request), (entry) => {
      if (entry.kind === 'answer') return send(response, entry.reply);
      capture(response, entry);
      next();
    });
  };
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
  const middleware = headgate(gate);
  return (request, response) => middleware(request, response, () => handler(request, response));
}

/** Says, before the head is written, that a cache answers this request after all: its charge is taken back (S12). */
export function servedFromCache(response: ServerResponse): void {
  (response as Response)[FROM_CACHE] = true;
}

/** The passage of the request behind this response: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf(response: ServerResponse): Passage | undefined {
  return (response as Response)[PASSAGE];
}

function whenEntered(entry: MaybePromise<Entry>, go: (entry: Entry) => void): void {
  if ('kind' in entry) go(entry);
  else void entry.then(go);
}

function send(response: ServerResponse, { status, headers, body }: Reply): void {
  // The client may have gone, or something in front of us may have answered, while the gate was asking its store.
  if (response.headersSent || response.writableEnded) return;
  response.writeHead(status, headers).end(body);
}

/** Adds our fields when the head is written, since only then is it known whether the answer is the provider's own 429 (S16). */
function capture(response: Response, passage: Passage): void {
  response[PASSAGE] = passage;
  const writeHead = response.writeHead as (status: number, ...rest: unknown[]) => ServerResponse;
  const capturing = (status: number, first?: string | HeadersInput, second?: HeadersInput) => {
    response.writeHead = writeHead;
    const { headers, stripRateLimit } = passage.settle({
      status: Number(status),
      cached: response[FROM_CACHE] === true,
    });
    const given = typeof first === 'string' ? second : (first ?? second);
    if (stripRateLimit) for (const name of RATE_LIMIT_FIELD_NAMES) response.removeHeader(name);
    const replaced = stripRateLimit ? RATE_LIMIT_FIELD_NAMES : Object.keys(headers);
    const all = withFields(headers, replaced, Array.isArray(given) ? pairs(given) : given);
    return typeof first === 'string'
      ? writeHead.call(response, status, first, all)
      : writeHead.call(response, status, all);
  };
  response.writeHead = capturing as typeof response.writeHead;
}

type HeadersInput = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** What a handler gives to `writeHead` wins over what was set before: so the fields that are ours to say are replaced in it. */
function withFields(
  ours: HeaderFields,
  replaced: readonly string[],
  given: OutgoingHttpHeaders = {},
): OutgoingHttpHeaders {
  const all: OutgoingHttpHeaders = {};
  for (const name of Object.keys(given))
    if (replaced.length === 0 || !replaced.includes(name.toLowerCase())) all[name] = given[name];
  for (const name in ours) all[name] = ours[name];
  return all;
}

/** Names and values in one flat array, or in pairs, as an object; a name that comes again becomes a list. */
function pairs(given: readonly unknown[]): OutgoingHttpHeaders {
  const flat = given.flat(1) as string[];
  const all: OutgoingHttpHeaders = Object.create(null);
  for (let i = 0; i + 1 < flat.length; i += 2) {
    const name = flat[i] as string;
    const value = flat[i + 1] as string;
    const before = all[name];
    all[name] = before === undefined ? value : [...(Array.isArray(before) ? before : [String(before)]), value];
  }
  return all;
}
