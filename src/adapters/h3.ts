/**
 * For h3 2.
 * @module headgate/h3
 */

import { toResponse } from 'h3';
import type { MaybePromise } from '../core/ports.ts';
import type { Gate, Passage } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { gateOf } from './shared/gate-of.ts';
import { routeName } from './shared/route-name.ts';
import { enterGate, servedFromCache as fromCache, passageOf as passageOfRequest, responseOf } from './web/bridge.ts';
import {
  type IdempotentRequestOptions,
  type ReadBodyOptions,
  fieldOfBody as webFieldOfBody,
  idempotentRequest as webIdempotentRequest,
} from './web/request.ts';

export type { IdempotentRequestOptions, ReadBodyOptions };

/** What is needed of an event of h3; `H3Event` is one. */
export interface H3EventLike {
  readonly req: Request;
  /** What was prepared for the answer in front. */
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

/**
 * Mounts a gate, for an app or for one route. What a handler returns or throws becomes its response here: so `onError()` belongs behind it,
 * while the app's own `onError` option is asked as ever.
 * @example
 * ```ts
 * app.use(headgate(gate)); // every route; or each by itself:
 * app.post('/api/v1/emails', handler, { middleware: [headgate(gate, { cost: 2 })] });
 * ```
 */
export function headgate<Event extends H3EventLike>(
  gate: Gate<Event>,
  options?: RouteOptions<Event>,
): H3Middleware<Event> {
  const own = gateOf(gate, options);
  return async (event, next) => {
    // The app's hook for responses sees this one when it is sent.
    const { onResponse: _, ...config } = (event.app?.config ?? {}) as H3Config;
    return enterGate(own, event, {
      request: event.req,
      go: () => toResponse((async () => next())(), event as unknown as H3Event, config),
      answer: (reply) => unmixed(responseOf(reply, event.req.method), event),
      waitUntil: (promise) => event.waitUntil(promise),
    });
  };
}

/** A gate's `route`: the template that h3 matched, `POST /api/v1/chats/:id`; all that has none counts as one. */
export function routeOf({ req, context }: H3EventLike): string {
  return routeName(req.method, context.matchedRoute?.route ?? '/**');
}

/** What a gate's `idempotent` resolver returns; see `idempotentRequest` of `headgate/fetch`. */
export function idempotentRequest({ req }: H3EventLike, options: IdempotentRequestOptions) {
  return webIdempotentRequest(req, options);
}

/** A gate's `account` that stands in the body; see `fieldOfBody` of `headgate/fetch`. */
export function fieldOfBody({ req }: H3EventLike, name: string, options?: ReadBodyOptions): Promise<string> {
  return webFieldOfBody(req, name, options);
}

/** Says, before the handler returns, that a cache answers this request after all: its charge is taken back (S12). */
export function servedFromCache({ req }: H3EventLike): void {
  fromCache(req);
}

/** The passage of this request: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf({ req }: H3EventLike): Passage | undefined {
  return passageOfRequest(req);
}

/** h3 puts what was prepared in front over the fields of a response: that is to give way where both have a field. */
function unmixed(response: Response, { res }: H3EventLike): Response {
  for (const name of response.headers.keys()) {
    res.headers.delete(name);
    res.errHeaders.delete(name);
  }
  return response;
}
