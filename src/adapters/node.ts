import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MaybePromise } from '../core/ports.ts';
import type { Entry, Gate, Passage } from '../gate/exchange.ts';
import type { Reply } from '../http/problem.ts';
import { RATE_LIMIT_FIELD_NAMES } from '../http/rate-limit-fields.ts';

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

const passages = new WeakMap<ServerResponse, Passage>();
const cachedAnswers = new WeakSet<ServerResponse>();

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
  cachedAnswers.add(response);
}

/** The passage of the request behind this response: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf(response: ServerResponse): Passage | undefined {
  return passages.get(response);
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

/** Sets our fields when the head is written, since only then is it known whether the answer is the provider's own 429 (S16). */
function capture(response: ServerResponse, passage: Passage): void {
  passages.set(response, passage);
  const writeHead = response.writeHead;
  response.writeHead = ((status: number, ...rest: HeadArguments) => {
    response.writeHead = writeHead;
    const { headers, stripRateLimit } = passage.settle({ status, cached: cachedAnswers.has(response) });
    const replaced = stripRateLimit ? RATE_LIMIT_FIELD_NAMES : Object.keys(headers);
    if (stripRateLimit) for (const name of replaced) response.removeHeader(name);
    for (const name in headers) response.setHeader(name, headers[name] as string);
    return Reflect.apply(writeHead, response, [status, ...rest.map((given) => without(replaced, given))]);
  }) as typeof response.writeHead;
}

/** Headers that a handler gives to `writeHead` itself: an object, names and values in one flat array, or pairs. */
type HeadersInput = Record<string, unknown> | unknown[];
type HeadArguments = [string?, HeadersInput?] | [HeadersInput?];

/** What `writeHead` is given wins over what was set before: so the fields that are ours to say are taken out of it. */
function without(
  names: readonly string[],
  given: string | HeadersInput | undefined,
): string | HeadersInput | undefined {
  if (typeof given !== 'object' || given === null || names.length === 0) return given;
  const isOurs = (name: unknown): boolean => names.includes(String(name).toLowerCase());
  if (!Array.isArray(given)) return Object.fromEntries(Object.entries(given).filter(([name]) => !isOurs(name)));
  if (given.every(Array.isArray)) return given.filter(([name]) => !isOurs(name));
  return given.filter((_, i) => !isOurs(given[i - (i % 2)]));
}
