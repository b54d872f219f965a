/**
 * For Elysia 1.4.
 * @module headgate/elysia
 */

import type { AnyElysia } from 'elysia';
import { type AddressLimits, isAddressLimits } from '../address/options.ts';
import type { PeerReader } from '../address/peer.ts';
import { OptionError } from '../base/errors.ts';
import { checkOptions, readByName } from '../base/options.ts';
import type { Gate } from '../gate/gate.ts';
import type { RejectionError } from '../gate/rejection-error.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { checkArgument, forContext, gateForRoute, refuseMount, routeName } from './shared/mount.ts';
import * as web from './web/bridge.ts';
import { isWebRequest } from './web/http.ts';
import * as webRequest from './web/request.ts';

export type { AddressLimits } from '../address/options.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

/** Argument of resolvers. Elysia's context does not exist yet, because nothing of the request was read. */
export interface ElysiaRequest {
  readonly request: Request;
  /** The template that will match, `/api/v1/chats/:id`; undefined if none does. */
  readonly route: string | undefined;
  /** The server on which the app listens; null if something else calls the app. */
  readonly server?: ElysiaServer | null | undefined;
}

/** The part of a server that limits by address use; Bun's server fits. */
export interface ElysiaServer {
  /** The address of the peer of a request's connection. */
  requestIP?(request: Request): { readonly address: string } | null;
}

const PEER: PeerReader<ElysiaRequest> = {
  address: ({ request, server }) => server?.requestIP?.(request)?.address,
  fields: ({ request }) => request.headers,
};

/** Options of {@link headgate}. */
export interface HeadgateOptions {
  /** Options of single routes, in place of the gate's, by template: `{ '/api/v1/emails': { cost: 2 } }`. */
  readonly routes?: Readonly<Record<string, RouteOptions<ElysiaRequest>>> | undefined;
}

/** The part of Elysia's context that its hooks need here. */
interface GuardedContext {
  readonly request: Request;
  readonly set: { readonly headers: object };
}

type Router = AnyElysia['router']['http'];
type Fetch = (...given: unknown[]) => unknown;

/**
 * Mounts a gate, or limits by the client's address, around a whole app, in front of every hook and body parser. Use it
 * in the app that serves, or in a plugin of that app. If Elysia would leave the gate out, every request fails with an
 * error that says so.
 * @throws OptionError
 * @example
 * ```ts
 * new Elysia().use(headgate(gate)).post('/api/v1/emails', () => 'sent');
 * ```
 */
export function headgate(
  gate: Gate<ElysiaRequest> | AddressLimits<ElysiaRequest>,
  options: HeadgateOptions = {},
): <App extends AnyElysia>(app: App) => App {
  checkOptions(options, ['routes'], 'options');
  const appGate = gateForRoute(gate, PEER);
  const routeGates = readByName(options.routes, 'options.routes', (given, place) => {
    if (isAddressLimits(gate) && given !== undefined)
      checkOptions(given, ['answer', 'rejection'], place, () => 'write it beside perAddress');
    return gateForRoute(appGate, PEER, given);
  });
  const misnamed = [...routeGates.keys()].find((route) => !/^(\/|$)/.test(route));
  if (misnamed !== undefined)
    throw new OptionError('options.routes', misnamed, 'must be named by templates, such as "/api/v1/emails"');
  const text = `headgate ${crypto.randomUUID()}`;
  const passed = Symbol(text);
  return (app, ...others: unknown[]) => {
    if (typeof app?.onTransform !== 'function') return refuseMount('app', app, 'an app of Elysia', others[1]);
    checkServes(app);
    let serving: AnyElysia | undefined;
    let findRoute: ReturnType<typeof createRouteFinder> | undefined;
    const around = (fetch: Fetch, request: Request & { [passed]?: RejectionError | true }) => {
      return (...given: unknown[]) => {
        request[passed] = true;
        // Not earlier: routes may be added until the first request.
        serving ??= servingApp(app);
        findRoute ??= createRouteFinder(serving);
        const route = findRoute(request);
        const routeGate = (route === undefined ? undefined : routeGates.get(route)) ?? appGate;
        return web.enterGate(
          routeGate,
          { request, route, server: serving.server },
          {
            request,
            proceed: () => fetch(...given),
            // The error handlers of the app see only what is thrown inside of it.
            reject(error) {
              request[passed] = error;
              return fetch(...given);
            },
          },
        );
      };
    };
    // Elysia keeps only one of several wrappers with the same source text. A distinct text makes every gate count.
    app.wrap(Object.assign(around, { toString: () => text }) as never);
    // From a plugin in a group Elysia does not take wrappers; from an async function it takes only routes and their
    // hooks.
    const guard = ({ request, set }: GuardedContext) => {
      // Without a status Elysia answers the error with 200.
      if (!(passed in request)) throw Object.assign(misplaced('an app that leaves the gate out'), { status: 500 });
      const { [passed]: rejection } = request as { [passed]?: RejectionError | true };
      if (typeof rejection !== 'object') return;
      Object.assign(set.headers, rejection.headers);
      throw rejection;
    };
    app.onRequest(guard as never).onTransform(guard as never);
    return app;
  };
}

/** For a gate's `route`: `POST /api/v1/chats/:id`. If no template matches, the name is `POST /*`, whatever the URL. */
export function routeOf(given: ElysiaRequest): string {
  checkArgument(isWebRequest(given?.request), 'request', given, 'an ElysiaRequest');
  const { request, route } = given;
  return routeName(request.method, route ?? '/*');
}

const rawRequest = ({ request }: { readonly request: Request }) => request;

/** For a gate's `idempotent` resolver; see `idempotentRequest` of `headgate/fetch`. */
export const idempotentRequest = /* @__PURE__ */ forContext(rawRequest, webRequest.idempotentRequest);

/** For a gate's `account`, if it is a field of the body; see `fieldOfBody` of `headgate/fetch`. */
export const fieldOfBody = /* @__PURE__ */ forContext(rawRequest, webRequest.fieldOfBody);

/** Call it with Elysia's context, before the handler returns, if a cache answers: the charge is refunded (S12). */
export const servedFromCache = /* @__PURE__ */ forContext(rawRequest, web.servedFromCache);

/** The passage of a context's request: its `decision`, and `abandon()` if it never reached the provider. */
export const passageOf = /* @__PURE__ */ forContext(rawRequest, web.passageOf);

/** An app that is part of another app uses that app's server. */
function checkServes(app: AnyElysia): void {
  if (app.config.aot === false) throw misplaced('an app with aot: false');
  if (Object.hasOwn(app, 'getServer')) throw misplaced('a group, a guard, or a plugin that is already in use');
}

function misplaced(given: string): OptionError {
  return new OptionError('app', given, 'must be the app that serves, compiled ahead of time (aot)');
}

/** The app that a plugin is part of; its routes include the plugin's. */
function servingApp(app: AnyElysia): AnyElysia {
  const parent = (app as unknown as { getParent(): AnyElysia | null }).getParent();
  return parent === null ? app : servingApp(parent);
}

/** Finds templates with a second router of Elysia's kind, because the app's router returns handlers. */
function createRouteFinder(app: AnyElysia): (request: Request) => string | undefined {
  const router = new (app.router.http.constructor as new () => Router)();
  for (const { method, path } of app.routes) router.add(method, path, path as never);
  return ({ method, url }) => {
    const start = url.indexOf('/', url.indexOf('://') + 3);
    const [path = '/'] = url.slice(start).split(/[?#]/, 1);
    const paths = path.length > 1 && path.endsWith('/') ? [path, path.slice(0, -1)] : [path, `${path}/`];
    const methods = method === 'HEAD' ? [method, 'GET', 'ALL'] : [method, 'ALL'];
    for (const one of paths) {
      for (const verb of methods) {
        const found = router.find(verb, one)?.store as string | undefined;
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
}
