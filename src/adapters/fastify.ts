/**
 * For Fastify 5.
 * @module headgate/fastify
 */

import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { AddressLimits } from '../address/options.ts';
import { OptionError } from '../base/errors.ts';
import { checkOneOf, checkOptions } from '../base/options.ts';
import type { Gate } from '../gate/gate.ts';
import { ROUTE_OPTIONS, type RouteOptions } from '../gate/route-options.ts';
import * as node from './node/bridge.ts';
import { type NodeRequest, type NodeResponse, nodePeer } from './node/http.ts';
import { adviseIfRead } from './node/put-back.ts';
import * as nodeRequest from './node/request.ts';
import { prepareRejection, sendFastifyReply } from './node/send.ts';
import { checkArgument, forContext, gateForRoute, refuseMount, routeName } from './shared/mount.ts';
import { keepBody, readBody } from './shared/request.ts';

export type { AddressLimits } from '../address/options.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

/** Options of the plugin, or, as `config.headgate`, of one route. */
export type FastifyRouteOptions = RouteOptions<FastifyRequest>;

/** Options of {@link headgate}. */
export interface FastifyGateOptions extends FastifyRouteOptions {
  /**
   * When the gate runs. `onRequest` is before the body is parsed: a rejected request costs nothing. `preHandler` is
   * after the body was parsed and validated: resolvers can read `request.body`.
   * @default 'onRequest'
   */
  readonly hook?: 'onRequest' | 'preHandler' | undefined;
  /**
   * Only with `hook: 'preHandler'`: whether the plugin reads the body of a request with an idempotency key into memory,
   * in front of the parsers, so that resolvers can make a fingerprint of it. If false, your content-type parser gets
   * the body as it arrives, and makes the fingerprint itself, with `createFingerprinter` of `headgate/http`. A function
   * decides per request; it runs before the body is parsed.
   * @default true
   */
  readonly readAhead?: boolean | ((request: FastifyRequest) => boolean) | undefined;
}

const PEER = /* @__PURE__ */ nodePeer(({ raw }: { readonly raw: NodeRequest }) => raw);
const HOOKS: readonly unknown[] = ['onRequest', 'preHandler'];
const OPTIONS = [...ROUTE_OPTIONS, 'hook', 'readAhead'];
const NOT_CALLED = 'must be what createGate() returns: write app.register(headgate(gate))';

/** For a resolver that reads the body in `preHandler`. */
const READ_BY_PARSER =
  'the gate runs in preHandler, behind the content-type parser. Use what the parser returned, ' +
  'or let readAhead be true for requests with an idempotency key';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Options of this route, in place of its gate's options; false: no gate. */
    headgate?: FastifyRouteOptions | false | undefined;
  }
}

/**
 * A plugin that puts a gate, or limits by the client's address, in front of every route of the context where it is
 * registered, and of its children.
 * @throws OptionError
 * @example
 * ```ts
 * app.register(headgate(gate));
 * app.post('/api/v1/emails', { config: { headgate: { cost: 2 } } }, async () => 'sent');
 * app.register(headgate({ perAddress: ['100/1m'] }));
 * ```
 */
export function headgate(
  gate: Gate<FastifyRequest> | AddressLimits<FastifyRequest>,
  options: FastifyGateOptions = {},
): FastifyPluginCallback {
  // Fastify catches what a plugin rejects with, not what it throws.
  if ('addHook' in Object(gate))
    return Promise.reject(new OptionError('gate', gate, NOT_CALLED, 'an instance of Fastify')) as never;
  checkOptions(options, OPTIONS, 'route options');
  const { hook = 'onRequest', readAhead = true, ...common } = options;
  checkHook(hook, readAhead);
  const pluginGate = gateForRoute(gate, PEER, Object.keys(common).length === 0 ? undefined : common);
  const routeGates = new WeakMap<object, Gate<FastifyRequest>>();
  const gateFor = (given: FastifyRouteOptions | false | undefined): Gate<FastifyRequest> | undefined => {
    if (given === undefined) return pluginGate;
    if (given === false) return undefined;
    const routeGate = routeGates.get(given) ?? pluginGate.with(given);
    routeGates.set(given, routeGate);
    return routeGate;
  };
  const gateForRequest = ({ is404, routeOptions }: FastifyRequest): Gate<FastifyRequest> | undefined =>
    is404 ? undefined : gateFor(routeOptions.config.headgate);
  /**
   * @param unreadable why the body cannot be read; the error answer is the gate's if a resolver reads the body,
   * Fastify's otherwise
   */
  const enter = (
    request: FastifyRequest,
    reply: FastifyReply,
    done: (error?: Error) => void,
    unreadable?: Error,
  ): void => {
    const routeGate = gateForRequest(request);
    if (routeGate === undefined) {
      done();
      return;
    }
    void node.enterGate<FastifyRequest, unknown>(routeGate, request, {
      response: reply.raw,
      requestId: request.id,
      answer: (answer) => sendFastifyReply(reply, answer),
      reject: (error) => (prepareRejection(reply, error) ? done(error) : undefined),
      // A time-out, or another hook, may have answered while the gate waited for its store.
      proceed: () => {
        if (!reply.sent) done();
      },
      skip: () => reply.hijack(),
      turnBack: unreadable && ((passage) => passage.abandon().then(() => done(unreadable))),
    });
  };
  const plugin: FastifyPluginCallback = (instance, given, ready) => {
    if (typeof instance?.addHook !== 'function')
      return refuseMount('instance', instance, 'an instance of Fastify', ready);
    const misplaced = OPTIONS.find((name) => name in Object(given));
    if (misplaced !== undefined)
      return ready(new OptionError(misplaced, Reflect.get(given, misplaced), 'must be in headgate(gate, { … })'));
    // Mistakes in a route's options show at the start. Routes that were declared before the plugin was loaded show them
    // with their first request.
    instance.addHook('onRoute', ({ config }) => void gateFor(config?.headgate));
    instance.addHook(hook, (request: FastifyRequest, reply: FastifyReply, done: () => void) =>
      enter(request, reply, done),
    );
    if (hook === 'preHandler')
      instance.addHook('preParsing', (request, reply, _payload, done) => {
        adviseIfRead(request.raw, READ_BY_PARSER);
        if (request.headers['idempotency-key'] === undefined || gateForRequest(request) === undefined) return done();
        try {
          if (!(typeof readAhead === 'function' ? readAhead(request) : readAhead)) return done();
        } catch (error) {
          return done(error as Error);
        }
        // The parser reads the body next, so this is the last chance to read all of it.
        keepBody(request.raw);
        readBody(nodeRequest.readable(request.raw), { maxBytes: request.routeOptions.bodyLimit }).then(
          () => done(),
          // The parser must not run: it would take the rest of the body for the whole.
          (error) => enter(request, reply, done, error),
        );
      });
    ready();
  };
  // The hooks apply to the context where the plugin is registered, not to another context.
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'headgate',
  });
}

/** @throws OptionError */
function checkHook(hook: unknown, readAhead: unknown): void {
  checkOneOf('hook', hook, HOOKS);
  if (typeof readAhead !== 'boolean' && typeof readAhead !== 'function')
    throw new OptionError('readAhead', readAhead, 'must be true, false or a function of the request');
  // In front of the parsers only resolvers read the body, so the option would silently do nothing.
  if (readAhead !== true && hook !== 'preHandler')
    throw new OptionError('readAhead', readAhead, "must be absent or true, unless hook is 'preHandler'");
}

/** For a gate's `route`: the template that Fastify matched, `POST /api/v1/chats/:id`. */
export function routeOf(request: FastifyRequest): string | undefined {
  checkArgument(typeof request?.routeOptions === 'object', 'request', request, 'a request of Fastify');
  const { method, routeOptions } = request;
  return routeOptions.url === undefined ? undefined : routeName(method, routeOptions.url);
}

// The common parts of Fastify's requests and replies: their types differ per server, HTTP/1 or HTTP/2.
const rawRequest = ({ raw }: { readonly raw: NodeRequest }) => raw;
const rawResponse = ({ raw }: { readonly raw: NodeResponse }) => raw;

/** For a gate's `idempotent` resolver; see `idempotentRequest` of `headgate/node`. */
export const idempotentRequest = /* @__PURE__ */ forContext(rawRequest, nodeRequest.idempotentRequest);

/** For a gate's `account`, if it is a field of the body; see `fieldOfBody` of `headgate/node`. */
export const fieldOfBody = /* @__PURE__ */ forContext(rawRequest, nodeRequest.fieldOfBody);

/** Call it before the reply is sent if a cache answers the request: the charge is refunded (S12). */
export const servedFromCache = /* @__PURE__ */ forContext(rawResponse, node.servedFromCache);

/** The passage of a reply's request: its `decision`, and `abandon()` if it never reached the provider. */
export const passageOf = /* @__PURE__ */ forContext(rawResponse, node.passageOf);
