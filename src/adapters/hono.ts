/**
 * For Hono 4.
 * @module headgate/hono
 */

import type { Context, Env, MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode, StatusCode } from 'hono/utils/http-status';
import type { AddressLimits } from '../address/options.ts';
import type { PeerReader } from '../address/peer.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { problemReply } from '../http/problem.ts';
import { checkArgument, forContext, gateForRoute, refuseMount, routeName } from './shared/mount.ts';
import * as web from './web/bridge.ts';
import * as webRequest from './web/request.ts';
import { createResponse, responseParts } from './web/response.ts';

export type { AddressLimits } from '../address/options.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

/** The `env` that the servers of Node, Bun and Deno pass. */
interface ServerEnv {
  /** Node, by `@hono/node-server`. */
  readonly incoming?: { readonly socket?: { readonly remoteAddress?: string | undefined } | undefined } | undefined;
  /** Bun, if the app passes an object with the server in it. */
  readonly server?: BunServer | undefined;
  /** Bun, whose server is `env` itself. */
  readonly requestIP?: BunServer['requestIP'] | undefined;
  /** Deno. */
  readonly remoteAddr?: { readonly hostname?: string | undefined } | undefined;
}

interface BunServer {
  requestIP(request: Request): { readonly address: string } | null;
}

const PEER: PeerReader<Context> = {
  advice:
    'serve `fetch: app.fetch`, so that the server can pass it on, or `(request, server) => app.fetch(request, { server })` ' +
    'on Bun; or set `address`',
  address(c) {
    const env = Object(c.env) as ServerEnv;
    const server = env.server ?? env;
    return env.incoming?.socket?.remoteAddress ?? env.remoteAddr?.hostname ?? server.requestIP?.(c.req.raw)?.address;
  },
  fields: (c) => c.req.raw.headers,
};

/**
 * Mounts a gate, for an app or for one route; or limits by the client's address.
 * @throws OptionError
 * @example
 * ```ts
 * app.use(headgate(gate)); // every route; or each by itself:
 * app.post('/api/v1/emails', headgate(gate, { cost: 2 }), (c) => c.text('sent'));
 * app.use(headgate({ perAddress: ['100/1m'] }));
 * ```
 */
export function headgate<E extends Env>(
  gate: Gate<Context<E>> | AddressLimits<Context<E>>,
  options?: RouteOptions<Context<E>>,
): MiddlewareHandler<E> {
  const routeGate = gateForRoute<Context<E>>(gate, PEER, options);
  const enter: MiddlewareHandler<E> = async (c, next) => {
    const response = await web.enterGate(routeGate, c, {
      request: c.req.raw,
      proceed: next,
      response: () => c.res,
      // Hono adds the fields that middleware in front of the gate set.
      answer: (reply) => {
        const { body, status, headers } = responseParts(reply, c.req.method);
        return c.newResponse(body as string | null, status as StatusCode, headers as Record<string, string | string[]>);
      },
      reject(cause) {
        const { headers, problem, status, message } = cause;
        for (const name of Object.keys(headers)) c.header(name, headers[name]);
        const res = createResponse(problemReply(problem, headers), c.req.method);
        throw new HTTPException(status as ContentfulStatusCode, { message, res, cause });
      },
      waitUntil: (promise) => waitUntil(c, promise),
    });
    if (!c.finalized || response !== c.res) {
      // Otherwise Hono would copy the fields of the replaced response over the new response's fields.
      c.res = undefined;
      c.res = response as Response;
    }
    return undefined;
  };
  return (c, next, ...others: unknown[]) => {
    if (typeof c?.req?.raw === 'object' && typeof next === 'function') return enter(c, next);
    return refuseMount('c', c, 'a context of Hono', others[0]);
  };
}

/**
 * For a gate's `route`: the template that Hono matched, `POST /api/v1/chats/:id`. For a gate in front of the whole app
 * it is the first template behind the gate without a wildcard or, if all contain one, the longest. If another route
 * answers, name the route in the options.
 */
export function routeOf(c: Context): string {
  checkArgument(Array.isArray(c?.req?.matchedRoutes), 'c', c, 'a context of Hono');
  const { method, matchedRoutes, routeIndex } = c.req;
  const own = matchedRoutes[routeIndex];
  const found = own !== undefined && hasMethod(own) ? own : likelyTarget(matchedRoutes.slice(routeIndex));
  return routeName(method, found?.path ?? '/*');
}

type Route = Context['req']['matchedRoutes'][number];

function likelyTarget(ahead: readonly Route[]): Route | undefined {
  return (
    ahead.find((route) => hasMethod(route) && isExact(route)) ??
    ahead.find(isExact) ??
    ahead.filter(hasMethod).sort((one, other) => other.path.length - one.path.length)[0] ??
    ahead.at(-1)
  );
}

/** Middleware of `use()` applies to all methods, so it is not the route. */
function hasMethod({ method }: Route): boolean {
  return method !== 'ALL';
}

function isExact({ path }: Route): boolean {
  return !path.endsWith('*');
}

const rawRequest = (c: { readonly req: { readonly raw: Request } }) => c.req?.raw;

/** For a gate's `idempotent` resolver; see `idempotentRequest` of `headgate/fetch`. */
export const idempotentRequest = /* @__PURE__ */ forContext(rawRequest, webRequest.idempotentRequest);

/** For a gate's `account`, if it is a field of the body; see `fieldOfBody` of `headgate/fetch`. */
export const fieldOfBody = /* @__PURE__ */ forContext(rawRequest, webRequest.fieldOfBody);

/** Call it before the handler returns if a cache answers the request: the charge is refunded (S12). */
export const servedFromCache = /* @__PURE__ */ forContext(rawRequest, web.servedFromCache);

/** The passage of this request: its `decision`, and `abandon()` if the request never reached the provider. */
export const passageOf = /* @__PURE__ */ forContext(rawRequest, web.passageOf);

function waitUntil(c: Context, promise: Promise<unknown>): void {
  try {
    c.executionCtx.waitUntil(promise);
  } catch {
    // Hono throws if the runtime lacks an execution context. Such a runtime does not stop work that continues after the
    // response.
  }
}
