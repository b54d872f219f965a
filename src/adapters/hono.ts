/**
 * For Hono 4.
 * @module headgate/hono
 */

import type { Context, Env, MiddlewareHandler } from 'hono';
import type { StatusCode } from 'hono/utils/http-status';
import type { Gate, Passage } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { gateOf } from './shared/gate-of.ts';
import { routeName } from './shared/route-name.ts';
import { enterGate, servedFromCache as fromCache, partsOf, passageOf as passageOfRequest } from './web/bridge.ts';
import {
  type IdempotentRequestOptions,
  type ReadBodyOptions,
  fieldOfBody as webFieldOfBody,
  idempotentRequest as webIdempotentRequest,
} from './web/request.ts';

export type { IdempotentRequestOptions, ReadBodyOptions };

/**
 * Mounts a gate, for an app or for one route.
 * @example
 * ```ts
 * app.use(headgate(gate)); // every route; or each by itself:
 * app.post('/api/v1/emails', headgate(gate, { cost: 2 }), (c) => c.text('sent'));
 * ```
 */
export function headgate<E extends Env>(
  gate: Gate<Context<E>>,
  options?: RouteOptions<Context<E>>,
): MiddlewareHandler<E> {
  const own = gateOf(gate, options);
  return async (c, next) => {
    const answer = await enterGate(own, c, {
      request: c.req.raw,
      go: () => next().then(() => c.res),
      // With the fields that middleware in front has prepared.
      answer: (reply) => {
        const { body, status, headers } = partsOf(reply, c.req.method);
        return c.newResponse(body as string | null, status as StatusCode, headers as Record<string, string | string[]>);
      },
      waitUntil: (promise) => waitUntil(c, promise),
    });
    if (!c.finalized || answer !== c.res) {
      // Hono would put the fields of what it replaces over its own.
      c.res = undefined;
      c.res = answer as Response;
    }
    return undefined;
  };
}

/**
 * A gate's `route`: the template that Hono matched, `POST /api/v1/chats/:id`. In front of the whole app it is the first one behind that is no
 * wildcard, or else the longest; name the route in the options where that is not the one that answers.
 */
export function routeOf(c: Context): string {
  const { method, matchedRoutes, routeIndex } = c.req;
  const ahead = matchedRoutes.slice(routeIndex);
  const [own] = ahead;
  const found = own !== undefined && isOfMethod(own) ? own : targetOf(ahead);
  return routeName(method, found?.path ?? '/*');
}

type Route = Context['req']['matchedRoutes'][number];

function targetOf(ahead: readonly Route[]): Route | undefined {
  return (
    ahead.find((route) => isOfMethod(route) && isExact(route)) ??
    ahead.find(isExact) ??
    ahead.filter(isOfMethod).sort((one, other) => other.path.length - one.path.length)[0] ??
    ahead.at(-1)
  );
}

/** Middleware of `use()` counts for all methods. */
function isOfMethod({ method }: Route): boolean {
  return method !== 'ALL';
}

function isExact({ path }: Route): boolean {
  return !path.endsWith('*');
}

/** What a gate's `idempotent` resolver returns; see `idempotentRequest` of `headgate/fetch`. */
export function idempotentRequest(c: Context, options: IdempotentRequestOptions) {
  return webIdempotentRequest(c.req.raw, options);
}

/** A gate's `account` that stands in the body; see `fieldOfBody` of `headgate/fetch`. */
export function fieldOfBody(c: Context, name: string, options?: ReadBodyOptions): Promise<string> {
  return webFieldOfBody(c.req.raw, name, options);
}

/** Says, before the handler returns, that a cache answers this request after all: its charge is taken back (S12). */
export function servedFromCache(c: Context): void {
  fromCache(c.req.raw);
}

/** The passage of this request: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf(c: Context): Passage | undefined {
  return passageOfRequest(c.req.raw);
}

function waitUntil(c: Context, promise: Promise<unknown>): void {
  try {
    c.executionCtx.waitUntil(promise);
  } catch {
    // Hono throws where the runtime has no such thing: what was begun goes on there anyway.
  }
}
