/**
 * For h3 2.
 * @module headgate/h3
 */

import { HTTPError, toResponse } from 'h3';
import type { AddressLimits } from '../address/options.ts';
import type { PeerReader } from '../address/peer.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { checkArgument, forContext, gateForRoute, refuseMount, routeName } from './shared/mount.ts';
import * as web from './web/bridge.ts';
import { isWebRequest } from './web/http.ts';
import * as webRequest from './web/request.ts';
import { createResponse } from './web/response.ts';

export type { AddressLimits } from '../address/options.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

/** The part of an h3 event that the adapter uses; `H3Event` fits. */
export interface H3EventLike {
  readonly req: Request;
  /** The fields that middleware in front of the gate prepared for the response. */
  readonly res: { readonly headers: Headers; readonly errHeaders: Headers };
  readonly context: { readonly matchedRoute?: { readonly route?: string | undefined } | undefined };
  readonly app?: { readonly config: object } | undefined;
  /** Keeps the runtime alive until the promise is settled. */
  waitUntil(promise: Promise<unknown>): void;
}

/** Middleware of h3. */
export type H3Middleware<Event extends H3EventLike> = (
  event: Event,
  next: () => MaybePromise<unknown>,
) => Promise<unknown>;

type H3Event = Parameters<typeof toResponse>[1];
type H3Config = NonNullable<Parameters<typeof toResponse>[2]>;

/** h3's servers say the address of the peer on every runtime, as a property of the request. */
const PEER: PeerReader<H3EventLike> = {
  address: ({ req }) => (req as { readonly ip?: string | undefined }).ip,
  fields: ({ req }) => req.headers,
};

/**
 * Mounts a gate, for an app or for one route; or limits by the client's address. The gate turns a handler's result
 * or throws into a response. Therefore mount `onError()` behind the gate; the app's own `onError` option works as
 * usual.
 * @throws OptionError
 * @example
 * ```ts
 * app.use(headgate(gate)); // every route; or each by itself:
 * app.post('/api/v1/emails', handler, { middleware: [headgate(gate, { cost: 2 })] });
 * app.use(headgate({ perAddress: ['100/1m'] }));
 * ```
 */
export function headgate<Event extends H3EventLike>(
  gate: Gate<Event> | AddressLimits<Event>,
  options?: RouteOptions<Event>,
): H3Middleware<Event> {
  const routeGate = gateForRoute(gate, PEER, options);
  const enter: H3Middleware<Event> = async (event, next) => {
    // The app calls its `onResponse` hook when it sends this response; a second call here would be one too many.
    const { onResponse: _, ...config } = (event.app?.config ?? {}) as H3Config;
    return web.enterGate(routeGate, event, {
      request: event.req,
      proceed: () => toResponse((async () => next())(), event as unknown as H3Event, config),
      answer: (reply) => withOwnFields(createResponse(reply, event.req.method), event),
      reject(cause) {
        const { headers, problem, status, message } = cause;
        // Of values that `onError` returns. The error itself carries the fields of h3's own answer.
        for (const name of Object.keys(headers)) event.res.headers.set(name, headers[name] as string);
        // h3 takes its second argument for the cause.
        throw Object.assign(new HTTPError(message, { status, headers, body: { ...problem } }), { cause });
      },
      waitUntil: (promise) => event.waitUntil(promise),
    });
  };
  return (event, next, ...others: unknown[]) => {
    if (isWebRequest(event?.req) && typeof next === 'function') return enter(event, next);
    return refuseMount('event', event, 'an event of h3', others[0]);
  };
}

/** For a gate's `route`: the template that h3 matched, `POST /api/v1/chats/:id`; `POST /**` if no template matches. */
export function routeOf(event: H3EventLike): string {
  checkArgument(isWebRequest(event?.req) && 'context' in event, 'event', event, 'an event of h3');
  const { req, context } = event;
  return routeName(req.method, context.matchedRoute?.route ?? '/**');
}

const rawRequest = ({ req }: H3EventLike) => req;

/** For a gate's `idempotent` resolver; see `idempotentRequest` of `headgate/fetch`. */
export const idempotentRequest = /* @__PURE__ */ forContext(rawRequest, webRequest.idempotentRequest);

/** For a gate's `account`, if it is a field of the body; see `fieldOfBody` of `headgate/fetch`. */
export const fieldOfBody = /* @__PURE__ */ forContext(rawRequest, webRequest.fieldOfBody);

/** Call it before the handler returns if a cache answers the request: the charge is refunded (S12). */
export const servedFromCache = /* @__PURE__ */ forContext(rawRequest, web.servedFromCache);

/** The passage of this request: its `decision`, and `abandon()` if the request never reached the provider. */
export const passageOf = /* @__PURE__ */ forContext(rawRequest, web.passageOf);

/**
 * h3 lets prepared fields override a response's fields. The gate's fields must win, so prepared fields with the same
 * names are removed.
 */
function withOwnFields(response: Response, { res }: H3EventLike): Response {
  for (const name of response.headers.keys()) {
    res.headers.delete(name);
    res.errHeaders.delete(name);
  }
  return response;
}
