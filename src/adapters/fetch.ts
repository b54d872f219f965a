/**
 * For runtimes and frameworks whose handlers turn a `Request` into a `Response`: Bun, Deno, Workers, Next.js,
 * SvelteKit, Remix.
 * @module headgate/fetch
 */

import type { AddressLimits } from '../address/options.ts';
import type { PeerReader } from '../address/peer.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { checkArgument, checkHandler, gateForRoute, refuseMount } from './shared/mount.ts';
import { enterGate, type ResultReader, SWITCHING_PROTOCOLS, type WebExchange } from './web/bridge.ts';
import { isWebRequest } from './web/http.ts';
import { RESULT_FIELD, replayResult, returnedOutcome, returnedStatus, thrownOutcome } from './web/results.ts';

export type { AddressLimits } from '../address/options.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';
export { passageOf, servedFromCache } from './web/bridge.ts';
export { fieldOfBody, idempotentRequest } from './web/request.ts';

const RESULTS_OF_ACTIONS: ResultReader = {
  status: returnedStatus,
  returned: returnedOutcome,
  thrown: thrownOutcome,
  ofThrown: (recording) => ({
    ...recording,
    store: (response) => recording.store({ ...response, fields: [...response.fields, RESULT_FIELD, 'thrown'] }),
  }),
};
const RESULTS: ResultReader = {
  ...RESULTS_OF_ACTIONS,
  status: (value) => (value === undefined ? SWITCHING_PROTOCOLS : returnedStatus(value)),
  returned: (value) => (value === undefined ? { status: 500, fields: [], body: undefined } : returnedOutcome(value)),
};

/** First argument of a handler: a request or, in SvelteKit and Remix, an event that contains the request. */
export type FetchSubject = Request | { readonly request: Request };

const SUBJECT = 'a Request of the web, or an object with one as `request`';
/** Only the runtime knows the address, and each in its own way: see the option `address`. */
const PEER: PeerReader<FetchSubject> = { fields: (subject) => requestOf(subject).headers };

/**
 * Puts a gate in front of a handler of web requests: Bun.serve, Deno.serve, Workers, Next.js route handlers and
 * middleware, SvelteKit endpoints, Remix loaders and actions. All other arguments of the handler are passed on, with
 * their types.
 * @throws OptionError
 * @example
 * ```ts
 * Deno.serve(withHeadgate(gate, (request) => new Response('sent')));
 * export const POST = withHeadgate(gate, async (request: NextRequest, { params }: Context) =>
 *   Response.json(await send(await request.json())),
 * );
 * ```
 */
export function withHeadgate<Subject extends FetchSubject, Rest extends unknown[], Answer>(
  gate: Gate<Subject> | AddressLimits<Subject>,
  handler: (subject: Subject, ...rest: Rest) => MaybePromise<Answer>,
  options?: RouteOptions<Subject>,
): (subject: Subject, ...rest: Rest) => Promise<Answer | Response> {
  const routeGate = gateForRoute(gate, PEER, options);
  checkHandler(handler);
  return async (subject, ...rest) => {
    const exchange = exchangeOf(subject, () => handler(subject, ...rest), findWaitUntil(rest));
    return (await enterGate(routeGate, subject, exchange)) as Answer | Response;
  };
}

/**
 * Mounts a gate as middleware of the common form, `(subject, next) => Response`.
 * @throws OptionError
 * @example
 * ```ts
 * const limited = headgate(gate);
 * export const handle = ({ event, resolve }) => limited(event, () => resolve(event)); // SvelteKit
 * ```
 */
export function headgate<Subject extends FetchSubject>(
  gate: Gate<Subject> | AddressLimits<Subject>,
  options?: RouteOptions<Subject>,
): <Answer>(subject: Subject, next: () => MaybePromise<Answer>) => Promise<Answer | Response> {
  const routeGate = gateForRoute(gate, PEER, options);
  const enter = async (subject: Subject, exchange: WebExchange) => enterGate(routeGate, subject, exchange);
  return <Answer>(subject: Subject, next: () => MaybePromise<Answer>, ...others: unknown[]) => {
    if (!hasRequest(subject) || typeof next !== 'function') return refuseMount('subject', subject, SUBJECT, others[0]);
    return enter(subject, exchangeOf(subject, next)) as Promise<Answer | Response>;
  };
}

function exchangeOf(subject: FetchSubject, proceed: () => unknown, waitUntil?: WebExchange['waitUntil']): WebExchange {
  const request = requestOf(subject);
  return {
    request,
    proceed,
    waitUntil,
    answer: (reply) => replayResult(reply, request.method),
    // An action may return nothing. A handler of requests returns nothing only after an upgrade.
    results: request === subject ? RESULTS : RESULTS_OF_ACTIONS,
  };
}

function requestOf(subject: FetchSubject): Request {
  checkArgument(hasRequest(subject), 'subject', subject, SUBJECT);
  return isWebRequest(subject) ? subject : subject.request;
}

function hasRequest(subject: FetchSubject): boolean {
  // A request comes first: some frameworks add a property `request` to it that cannot be read.
  return isWebRequest(subject) || isWebRequest(Object(subject).request);
}

/** Workers and Next.js pass it beside the request. Without it, they may stop while a response is being stored. */
function findWaitUntil(rest: readonly unknown[]): ((promise: Promise<unknown>) => void) | undefined {
  const context = rest.find(
    (one): one is { waitUntil(promise: Promise<unknown>): void } =>
      typeof (one as { waitUntil?: unknown } | null | undefined)?.waitUntil === 'function',
  );
  return context && ((promise) => context.waitUntil(promise));
}
