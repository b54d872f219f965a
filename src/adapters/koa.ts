/**
 * For Koa 3.
 * @module headgate/koa
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressLimits } from '../address/options.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import type { Reply } from '../http/problem.ts';
import * as node from './node/bridge.ts';
import { isNodeRequest, nodePeer } from './node/http.ts';
import { createReadAhead } from './node/read-ahead.ts';
import * as nodeRequest from './node/request.ts';
import { prepareRejection } from './node/send.ts';
import { checkArgument, forContext, gateForRoute, refuseMount, routeName } from './shared/mount.ts';
import { replyFields } from './shared/reply.ts';
import type { ReadBodyOptions } from './shared/request.ts';

export type { AddressLimits } from '../address/options.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

/** The part of a Koa context that the adapter uses; `Koa.Context` fits. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  readonly originalUrl: string;
  status: number;
  body: unknown;
  respond?: boolean | undefined;
  /** Sets a field of the response. */
  set(name: string, value: string | string[]): void;
  /** Removes a field of the response. */
  remove(name: string): void;
}

/** Middleware of Koa. */
export type KoaMiddleware<Context extends KoaContext> = (
  context: Context,
  next: () => Promise<unknown>,
) => Promise<void>;

const PEER = /* @__PURE__ */ nodePeer(({ req }: KoaContext) => req);

/**
 * Mounts a gate, or limits by the client's address. If requests carry idempotency keys, mount it in front of body
 * parsers.
 * @throws OptionError
 * @example
 * ```ts
 * router.post('/api/v1/emails', headgate(gate), (context) => { context.body = 'sent'; });
 * app.use(headgate({ perAddress: ['100/1m'] }));
 * ```
 */
export function headgate<Context extends KoaContext>(
  gate: Gate<Context> | AddressLimits<Context>,
  options?: RouteOptions<Context>,
): KoaMiddleware<Context> {
  const routeGate = gateForRoute(gate, PEER, options);
  const enter = async (context: Context, next: () => Promise<unknown>) => {
    await node.enterGate<Context, unknown>(routeGate, context, {
      response: context.res,
      answer: (reply) => answer(context, reply),
      reject(error) {
        if (prepareRejection(context.res, error)) throw error;
      },
      proceed: () => next(),
      skip: () => {
        context.respond = false;
      },
    });
  };
  return (context, next, ...others: unknown[]) => {
    if (isNodeRequest(context?.req) && typeof next === 'function') return enter(context, next);
    return refuseMount('context', context, 'a context of Koa', others[0]);
  };
}

/**
 * For body parsers in front of the gate; see `readAhead` of `headgate/node`.
 * @throws OptionError
 */
export function readAhead<Context extends KoaContext>(options: ReadBodyOptions = {}): KoaMiddleware<Context> {
  const read = createReadAhead(options);
  return async (context, next) => {
    const reply = await read(context.req);
    if (reply === undefined) await next();
    else answer(context, reply);
  };
}

/** What `@koa/router` and `koa-mount` add to a context. */
export interface RoutedContext {
  readonly url?: string | undefined;
  /** The path of the layer that runs: a route, or middleware of `router.use`. */
  readonly _matchedRoute?: unknown;
  /** Every layer whose path matched, in order; layers of `router.use` list no methods. */
  readonly matched?: readonly { readonly path: unknown; readonly methods: readonly string[] }[] | undefined;
  readonly mountPath?: string | undefined;
}

/**
 * For a gate's `route`: the template that `@koa/router` matched, `POST /api/v1/chats/:id`. In
 * `router.use(headgate(gate))` it is the template of the next route. Under `koa-mount` it begins with the mount path;
 * of nested mounts, only the innermost path is known.
 * @throws Error outside a route, and in a route whose path is not a string: otherwise requests would pass without
 * limits and without notice
 */
export function routeOf(context: KoaContext & RoutedContext): string {
  checkArgument(typeof context?.originalUrl === 'string' && 'res' in context, 'context', context, 'a context of Koa');
  const { method, url, originalUrl, matched = [], mountPath = '', _matchedRoute } = context;
  const running = matched.findIndex(({ path }) => path === _matchedRoute);
  const path = matched.find(({ methods }, at) => at >= running && methods.includes(method))?.path;
  if (running < 0 || typeof path !== 'string') {
    throw new Error(
      "routeOf(): no route template: mount the gate in a route, router.post('/x', headgate(gate)), or set `route`.",
    );
  }
  // `mountPath` stays on the context behind the mount as well.
  return routeName(method, url === originalUrl ? path : mountPath + path);
}

const response = ({ res }: KoaContext) => res;

/** For a gate's `idempotent` resolver; see `idempotentRequest` of `headgate/node`. */
export const idempotentRequest = /* @__PURE__ */ forContext(
  // `koa-mount` removes the prefix from `url`.
  ({ req, originalUrl }: KoaContext) => Object.assign(req ?? {}, { originalUrl }),
  nodeRequest.idempotentRequest,
);

/** For a gate's `account`, if it is a field of the body; see `fieldOfBody` of `headgate/node`. */
export const fieldOfBody = /* @__PURE__ */ forContext(({ req }: KoaContext) => req, nodeRequest.fieldOfBody);

/** Call it before the response is sent if a cache answers the request: the charge is refunded (S12). */
export const servedFromCache = /* @__PURE__ */ forContext(response, node.servedFromCache);

/** The passage of this request: its `decision`, and `abandon()` if the request never reached the provider. */
export const passageOf = /* @__PURE__ */ forContext(response, node.passageOf);

/** Answers through the context, so that middleware in front of the gate sees the answer. */
function answer(context: KoaContext, { status, headers, body }: Reply): void {
  context.status = status;
  // If the body is not set, Koa does not know its length, so it cannot add a length to the answer to HEAD.
  if (context.method !== 'HEAD') context.body = Buffer.from(body as Uint8Array);
  context.remove('content-type');
  const fields = replyFields(headers, context.method);
  for (const name of Object.keys(fields)) context.set(name, fields[name] as string | string[]);
}
