/**
 * For Elysia 1.4.
 * @module headgate/elysia
 */

import type { AnyElysia } from 'elysia';
import { OptionError } from '../core/errors.ts';
import type { Gate, Passage } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { gateOf } from './shared/gate-of.ts';
import { routeName } from './shared/route-name.ts';
import { enterGate, servedFromCache as fromCache, passageOf as passageOfRequest } from './web/bridge.ts';
import {
  type IdempotentRequestOptions,
  type ReadBodyOptions,
  fieldOfBody as webFieldOfBody,
  idempotentRequest as webIdempotentRequest,
} from './web/request.ts';

export type { IdempotentRequestOptions, ReadBodyOptions };

/** What resolvers are given: Elysia has no context yet, since nothing was read of the request. */
export interface ElysiaRequest {
  readonly request: Request;
  /** The template that will match, `/api/v1/chats/:id`; undefined where none does. */
  readonly route: string | undefined;
}

/** Options of {@link headgate}. */
export interface HeadgateOptions {
  /** What single routes say in place of the gate's options, by template: `{ '/api/v1/emails': { cost: 2 } }`. */
  readonly routes?: Readonly<Record<string, RouteOptions<ElysiaRequest>>> | undefined;
}

type Router = AnyElysia['router']['http'];
type Fetch = (...given: unknown[]) => unknown;

/**
 * Mounts a gate around a whole app, in front of every hook and body parser. To be used by the app that serves, or by a plugin of it; where Elysia
 * would leave it out, every request fails with an error that says so.
 * @example
 * ```ts
 * new Elysia().use(headgate(gate)).post('/api/v1/emails', () => 'sent');
 * ```
 * @throws OptionError
 */
export function headgate(
  gate: Gate<ElysiaRequest>,
  { routes = {} }: HeadgateOptions = {},
): <App extends AnyElysia>(app: App) => App {
  const general = gateOf(gate);
  const gates = new Map(Object.keys(routes).map((route) => [route, gateOf(gate, routes[route])]));
  const text = `headgate ${crypto.randomUUID()}`;
  const passed = Symbol(text);
  return (app) => {
    check(app);
    let find: ReturnType<typeof finder> | undefined;
    const around = (fetch: Fetch, request: Request & { [passed]?: true }) => {
      return (...given: unknown[]) => {
        request[passed] = true;
        // Not before: routes may be added until the first request.
        find ??= finder(app);
        const route = find(request);
        const own = (route === undefined ? undefined : gates.get(route)) ?? general;
        return enterGate(own, { request, route }, { request, go: () => fetch(...given) });
      };
    };
    // Of what reads the same Elysia keeps one: two gates are two.
    app.wrap(Object.assign(around, { toString: () => text }) as never);
    // What Elysia leaves out where it takes in a plugin: in a group what it wraps, from an async function all but its routes and their hooks.
    const guard = ({ request }: { readonly request: Request }) => {
      // Without a status Elysia makes a 200 of the error.
      if (!(passed in request)) throw Object.assign(misplaced('one that leaves the gate out'), { status: 500 });
    };
    app.onRequest(guard as never).onTransform(guard as never);
    return app;
  };
}

/** A gate's `route`: `POST /api/v1/chats/:id`; all that no template matches counts as one. */
export function routeOf({ request, route }: ElysiaRequest): string {
  return routeName(request.method, route ?? '/*');
}

/** What a gate's `idempotent` resolver returns; see `idempotentRequest` of `headgate/fetch`. */
export function idempotentRequest({ request }: ElysiaRequest, options: IdempotentRequestOptions) {
  return webIdempotentRequest(request, options);
}

/** A gate's `account` that stands in the body; see `fieldOfBody` of `headgate/fetch`. */
export function fieldOfBody({ request }: ElysiaRequest, name: string, options?: ReadBodyOptions): Promise<string> {
  return webFieldOfBody(request, name, options);
}

/** Says, before the handler returns, that a cache answers this request after all: its charge is taken back (S12). Takes Elysia's context. */
export function servedFromCache({ request }: { readonly request: Request }): void {
  fromCache(request);
}

/** The passage of this request: its `decision`, and `abandon()` for one that never reached the provider. Takes Elysia's context. */
export function passageOf({ request }: { readonly request: Request }): Passage | undefined {
  return passageOfRequest(request);
}

/** An app that belongs to another has its server. */
function check(app: AnyElysia): void {
  if (app.config.aot === false) throw misplaced('one with aot: false');
  if (Object.hasOwn(app, 'getServer')) throw misplaced('a group, a guard, or a plugin that is in use already');
}

function misplaced(given: string): OptionError {
  return new OptionError('app', given, 'must be the app that serves, compiled ahead of time (aot)');
}

/** The app that a plugin is part of; it has the plugin's routes as well. */
function servingOf(app: AnyElysia): AnyElysia {
  const parent = (app as unknown as { getParent(): AnyElysia | null }).getParent();
  return parent === null ? app : servingOf(parent);
}

/** Finds templates with a router of Elysia's own kind: its own holds handlers, and not what they were registered by. */
function finder(app: AnyElysia): (request: Request) => string | undefined {
  const router = new (app.router.http.constructor as new () => Router)();
  for (const { method, path } of servingOf(app).routes) router.add(method, path, path as never);
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
