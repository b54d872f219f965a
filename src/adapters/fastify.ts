/**
 * For Fastify 5.
 * @module headgate/fastify
 */

import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { fieldOfBody as fieldOfNodeBody, type ReadBodyOptions, readBody } from './node/body.ts';
import { servedFromCache as fromCache, letPass, passageOf as passageOfNode, whenEntered } from './node/bridge.ts';
import { answer } from './node/fastify-reply.ts';
import {
  type IdempotentRequestOptions,
  idempotentRequest as nodeIdempotentRequest,
} from './node/idempotent-request.ts';
import { gateOf } from './shared/gate-of.ts';
import { routeName } from './shared/route-name.ts';

export type { IdempotentRequestOptions, ReadBodyOptions };

/** Of the whole plugin, or, as `config.headgate`, of one route. */
export type FastifyRouteOptions = RouteOptions<FastifyRequest>;

/** Options of {@link headgate}. */
export interface FastifyGateOptions extends FastifyRouteOptions {
  /**
   * When the gate is asked. `onRequest` is before the body is parsed: a rejected request costs nothing. `preHandler` is after it was parsed and
   * validated: resolvers may read `request.body`.
   * @default 'onRequest'
   */
  readonly hook?: 'onRequest' | 'preHandler' | undefined;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What this route says in place of its gate's options; false: no gate. */
    headgate?: FastifyRouteOptions | false | undefined;
  }
}

/**
 * A plugin that puts a gate in front of every route of the context that it is registered in, and of its children.
 * @example
 * ```ts
 * app.register(headgate(gate));
 * app.post('/api/v1/emails', { config: { headgate: { cost: 2 } } }, async () => 'sent');
 * ```
 */
export function headgate(gate: Gate<FastifyRequest>, options: FastifyGateOptions = {}): FastifyPluginCallback {
  const { hook = 'onRequest', ...common } = options;
  const general = gateOf(gate, Object.keys(common).length === 0 ? undefined : common);
  const gates = new WeakMap<object, Gate<FastifyRequest>>();
  const ofRoute = (given: FastifyRouteOptions | false | undefined): Gate<FastifyRequest> | undefined => {
    if (given === undefined) return general;
    if (given === false) return undefined;
    const own = gates.get(given) ?? general.with(given);
    gates.set(given, own);
    return own;
  };
  const ofRequest = ({ is404, routeOptions }: FastifyRequest): Gate<FastifyRequest> | undefined =>
    is404 ? undefined : ofRoute(routeOptions.config.headgate);
  /** @param unreadable why the body cannot be read: the gate says it, where it reads it; else such a request goes no further either */
  const enter = (
    request: FastifyRequest,
    reply: FastifyReply,
    done: (error?: Error) => void,
    unreadable?: Error,
  ): void => {
    const own = ofRequest(request);
    if (own === undefined) {
      done();
      return;
    }
    whenEntered(own.enter(request, request.id, passageOf(reply)), (entry) => {
      // A time-out, or another hook, may have answered while the gate was asking its store.
      const isLate = reply.sent;
      if (entry.kind === 'answer') {
        if (!isLate) answer(reply, entry.reply);
      } else if (unreadable !== undefined) void entry.abandon().then(() => done(unreadable));
      else if (letPass(reply.raw, entry) === 'gone') reply.hijack();
      else if (!isLate) done();
    });
  };
  const plugin: FastifyPluginCallback = (instance, _, ready) => {
    // A fault in a route's options is to show at the start; routes that are declared before the plugin is loaded show it when they are asked.
    instance.addHook('onRoute', ({ config }) => void ofRoute(config?.headgate));
    const ask = (request: FastifyRequest, reply: FastifyReply, done: () => void): void => enter(request, reply, done);
    instance.addHook(hook, ask);
    if (hook === 'preHandler')
      instance.addHook('preParsing', (request, reply, _payload, done) => {
        if (request.headers['idempotency-key'] === undefined || ofRequest(request) === undefined) return done();
        // The parser is about to take it.
        readBody(request.raw, { maxBytes: request.routeOptions.bodyLimit }).then(
          () => done(),
          // Of what is left of it a parser would make another body.
          (error) => enter(request, reply, done, error),
        );
      });
    ready();
  };
  // Its hooks are for the context that it is registered in, not for one of its own.
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'headgate',
  });
}

/** A gate's `route`: the template that matched, `POST /api/v1/chats/:id`. */
export function routeOf({ method, routeOptions }: FastifyRequest): string | undefined {
  return routeOptions.url === undefined ? undefined : routeName(method, routeOptions.url);
}

/** What a gate's `idempotent` resolver returns; see `idempotentRequest` of `headgate/node`. */
export function idempotentRequest({ raw }: FastifyRequest, options: IdempotentRequestOptions) {
  return nodeIdempotentRequest(raw, options);
}

/** A gate's `account` that stands in the body; see `fieldOfBody` of `headgate/node`. */
export function fieldOfBody({ raw }: FastifyRequest, name: string, options?: ReadBodyOptions): Promise<string> {
  return fieldOfNodeBody(raw, name, options);
}

/** Says, before the answer is sent, that a cache answers this request after all: its charge is taken back (S12). */
export function servedFromCache({ raw }: FastifyReply): void {
  fromCache(raw);
}

/** The passage of the request behind this reply: its `decision`, and `abandon()` for one that never reached the provider. */
export function passageOf({ raw }: FastifyReply) {
  return passageOfNode(raw);
}
