/**
 * For runtimes and frameworks whose handlers turn a `Request` into a `Response`: Bun, Deno, Workers, Next.js,
 * SvelteKit, Remix.
 * @module headgate/fetch
 */

import type { AddressLimits } from '../address/options.ts';
import type { PeerReader } from '../address/peer.ts';
import { OptionError } from '../base/errors.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { checkAnswers, checkArgument, checkHandler, forContext, gateForRoute, refuseMount } from './shared/mount.ts';
import * as web from './web/bridge.ts';
import { isWebRequest } from './web/http.ts';
import * as webRequest from './web/request.ts';
import {
  faultOfMiddleware,
  RESULT_FIELD,
  replayResult,
  returnedOutcome,
  returnedStatus,
  thrownOutcome,
} from './web/results.ts';

export type { AddressLimits } from '../address/options.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

const RESULTS_OF_ACTIONS: web.ResultReader = {
  status: returnedStatus,
  returned: returnedOutcome,
  thrown: thrownOutcome,
  fault: faultOfMiddleware,
  ofThrown: (recording) => ({
    ...recording,
    store: (response) => recording.store({ ...response, fields: [...response.fields, RESULT_FIELD, 'thrown'] }),
  }),
};
const RESULTS: web.ResultReader = {
  ...RESULTS_OF_ACTIONS,
  status: (value) => (value === undefined ? web.SWITCHING_PROTOCOLS : returnedStatus(value)),
  returned: (value) => (value === undefined ? { status: 500, fields: [], body: undefined } : returnedOutcome(value)),
};

const NEEDS_NEXT = 'headgate(gate) needs (request, next); for a handler use withHeadgate(gate, handler)';

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
  checkAnswers(routeGate);
  return async (subject, ...rest) => {
    const exchange = exchangeOf(subject, () => handler(subject, ...rest), findWaitUntil(rest));
    return (await web.enterGate(routeGate, subject, exchange)) as Answer | Response;
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
  checkAnswers(routeGate);
  const enter = async (subject: Subject, next: () => unknown) => {
    if (typeof next !== 'function') throw new OptionError('next', next, NEEDS_NEXT);
    return web.enterGate(routeGate, subject, exchangeOf(subject, next));
  };
  return <Answer>(subject: Subject, next: () => MaybePromise<Answer>, ...others: unknown[]) => {
    if (!hasRequest(subject)) return refuseMount('subject', subject, SUBJECT, others[0]);
    return enter(subject, next) as Promise<Answer | Response>;
  };
}

/**
 * For a gate's `idempotent` resolver: reads the idempotency key (I1) and, if there is one, a copy of the body, to make
 * a fingerprint of it (I3). The handler reads the request itself, untouched: `json()`, `formData()`, `body` (I13).
 * Nothing may read the body in front of the gate. Takes the request, or an object that contains it, such as SvelteKit's
 * event.
 *
 * `Headers` joins repeated fields by a comma and a space. A key that contains both cannot be distinguished from two
 * keys and is rejected (I1).
 * @returns undefined if there is no key; a fault, answered with 422, if the header Idempotency-Key or Content-Type is
 * not valid
 * @throws BodyError, which the gate answers with 400, 408, 413 or 422
 * @example
 * ```ts
 * const gate = createGate<Request>({
 *   limiter, account, route, idempotency,
 *   idempotent: (request) =>
 *     request.method === 'POST' ? idempotentRequest(request, { scope: applicationOf(request) }) : undefined,
 * });
 * ```
 */
export const idempotentRequest = /* @__PURE__ */ forContext(requestOf, webRequest.idempotentRequest);

/**
 * For a gate's `account`, if it is a field of the body: reads a copy of the body; the handler finds it untouched (I13).
 * The field must appear exactly once, as a JSON property, a form field or a part of a multipart form, and must not be
 * empty.
 * @throws BodyError, which the gate answers with 400, 408, 413 or 422
 * @example
 * ```ts
 * account: (request) => fieldOfBody(request, 'account_id'),
 * ```
 */
export const fieldOfBody = /* @__PURE__ */ forContext(requestOf, webRequest.fieldOfBody);

/** Call it before the handler returns if a cache answers the request: the charge is refunded (S12). */
export const servedFromCache = /* @__PURE__ */ forContext(requestOf, web.servedFromCache);

/** The passage of this request: its `decision`, and `abandon()` if the request never reached the provider. */
export const passageOf = /* @__PURE__ */ forContext(requestOf, web.passageOf);

function exchangeOf(
  subject: FetchSubject,
  proceed: () => unknown,
  waitUntil?: web.WebExchange['waitUntil'],
): web.WebExchange {
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
