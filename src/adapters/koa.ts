/**
 * For Koa 3.
 * @module headgate/koa
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import type { Reply } from '../http/problem.ts';
import { fieldOfBody as fieldOfNodeBody, type ReadBodyOptions } from './node/body.ts';
import { fieldsOf, servedFromCache as fromCache, letPass, passageOf as passageOfNode } from './node/bridge.ts';
import {
  type IdempotentRequestOptions,
  idempotentRequest as nodeIdempotentRequest,
} from './node/idempotent-request.ts';
import { gateOf } from './shared/gate-of.ts';
import { routeName } from './shared/route-name.ts';

export type { IdempotentRequestOptions, ReadBodyOptions };

/** What is needed of a context of Koa; `Koa.Context` is one. */
export interface KoaContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  readonly originalUrl: string;
  status: number;
  body: unknown;
  respond?: boolean | undefined;
  /** Of the response: sets a field. */
  set(name: string, value: string | string[]): void;
  /** Of the response: takes a field away. */
  remove(name: string): void;
}

/** Middleware of Koa. */
export type KoaMiddleware<Context extends KoaContext> = (
  context: Context,
  next: () => Promise<unknown>,
) => Promise<void>;

/**
 * Mounts a gate. In front of body parsers, where requests carry idempotency keys.
 * @example
 * ```ts
 * router.post('/api/v1/emails', headgate(gate), (context) => { context.body = 'sent'; });
 * ```
 */
export function headgate<Context extends KoaContext>(
  gate: Gate<Context>,
  options?: RouteOptions<Context>,
): KoaMiddleware<Context> {
  const own = gateOf(gate, options);
  return async (context, next) => {
    const entry = await own.enter(context, undefined, passageOf(context));
    if (entry.kind === 'answer') return answer(context, entry.reply);
    if (letPass(context.res, entry) === 'gone') context.respond = false;
    else await next();
  };
}

/** What `@koa/router` and `koa-mount` leave on a context. */
export interface RoutedContext {
  readonly url?: string | undefined;
  /** The path of the layer that runs: a route, or what `router.use` added. */
  readonly _matchedRoute?: unknown;
  /** Every layer whose path matched, in their order; what `router.use` added has no methods. */
  readonly matched?: readonly { readonly path: unknown; readonly methods: readonly string[] }[] | undefined;
  readonly mountPath?: string | undefined;
}

/**
 * A gate's `route`: the template that `@koa/router` matched, `POST /api/v1/chats/:id`; in `router.use(headgate(gate))` that of the route that comes
 * next. Under `koa-mount` with the path that it is mounted at; of nested mounts it tells the innermost alone.
 * @throws Error outside a route, and in one whose path is no text: passing without limits would go unnoticed
 */
export function routeOf(context: KoaContext & RoutedContext): string {
  const { method, url, originalUrl, matched = [], mountPath = '', _matchedRoute } = context;
  const running = matched.findIndex(({ path }) => path === _matchedRoute);
  const path = matched.find(({ methods }, at) => at >= running && methods.includes(method))?.path;
  if (running < 0 || typeof path !== 'string') {
    throw new Error(
      "routeOf() finds no template: mount the gate inside a route, router.post('/x', headgate(gate), …), or name the route in its options.",
    );
  }
  // It stays on the context behind the mount, too.
  return routeName(method, url === originalUrl ? path : mountPath + path);
}

/** What a gate's `idempotent` resolver returns; see `idempotentRequest` of `headgate/node`. */
export function idempotentRequest({ req, originalUrl }: KoaContext, options: IdempotentRequestOptions) {
  // What Koa mounts under a prefix has lost it in `url`.
  return nodeIdempotentRequest(Object.assign(req, { originalUrl }), options);
}

/** A gate's `account` that stands in the body; see `fieldOfBody` of `headgate/node`. */
export function fieldOfBody({ req }: KoaContext, name: string, options?: ReadBodyOptions): Promise<string> {
  return fieldOfNodeBody(req, name, options);
}

/** Says, before the answer is sent, that a cache answers this request after all: its charge is taken back (S12). */
export function servedFromCache({ res }: KoaContext): void {
  fromCache(res);
}

/** The passage of the request behind this context: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf({ res }: KoaContext) {
  return passageOfNode(res);
}

/** By way of the context, so that what stands around sees it. */
function answer(context: KoaContext, reply: Reply): void {
  context.status = reply.status;
  // Without a body Koa knows no length of an answer to HEAD either.
  if (context.method !== 'HEAD') context.body = Buffer.from(reply.body as Uint8Array);
  context.remove('content-type');
  const fields = fieldsOf(reply, context.method);
  for (const name of Object.keys(fields)) context.set(name, fields[name] as string | string[]);
}
