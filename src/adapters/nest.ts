/**
 * For Nest 11 and 12, on Express and on Fastify.
 * @module headgate/nest
 */

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type {
  CallHandler,
  CanActivate,
  DynamicModule,
  ExecutionContext,
  FactoryProvider,
  ModuleMetadata,
  NestInterceptor,
} from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AddressLimits } from '../address/options.ts';
import type { MaybePromise } from '../core/ports.ts';
import type { Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { type ExpressRequest, routeOf as routeOfExpress } from './express.ts';
import { routeOf as routeOfFastify } from './fastify.ts';
import { enterGate } from './node/bridge.ts';
import type { NodeRequest } from './node/http.ts';
import { nodePeer } from './node/peer.ts';
import { idempotentRequest as idempotentNodeRequest } from './node/request.ts';
import { sendFastifyReply, sendReply } from './node/send.ts';
import { forContext, gateForRoute } from './shared/mount.ts';

export type { AddressLimits } from '../address/options.ts';
export { passageOf, servedFromCache } from './node/bridge.ts';
export { readAhead } from './node/read-ahead.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

/** The part of a Fastify request that the adapter uses; `FastifyRequest` has it, also over HTTP/2. */
export interface NestFastifyRequest {
  readonly raw: NodeRequest;
  readonly method: string;
  readonly url: string;
  readonly originalUrl: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
  readonly routeOptions: { readonly url?: string | undefined };
}

/**
 * A request of Nest, on Express or on Fastify. Only the parts that the adapter uses, because no user has the types of
 * both platforms.
 */
export type NestRequest = (ExpressRequest & { readonly body?: unknown }) | NestFastifyRequest;
/** A gate, or limits by the client's address. */
export type NestGate = Gate<NestRequest> | AddressLimits<NestRequest>;
type NestResponse = ServerResponse | FastifyReply;

const nodeRequest = (request: NestRequest) => ('raw' in request ? request.raw : request);
const PEER = /* @__PURE__ */ nodePeer(nodeRequest);

/** The property in which the decorator stores a route's options; every copy of this package finds it. */
const OPTIONS = Symbol.for('headgate.nest.options');
type Options = RouteOptions<NestRequest> | false;
type Decorated = object & { readonly [OPTIONS]?: Options };

/**
 * Sets the options of one route, or of every route of a controller, in place of the gate's own; false: no gate.
 * @example
 * ```ts
 * @Post('emails')
 * @Headgate({ cost: 2 })
 * send() {}
 * ```
 */
export function Headgate(options: Options): MethodDecorator & ClassDecorator {
  return (target: object, _name?: string | symbol, descriptor?: { value?: unknown }) => {
    Object.defineProperty(descriptor?.value ?? target, OPTIONS, { value: options, configurable: true });
  };
}

/** Puts a gate in front of the routes that it guards. Add it behind guards that set what its resolvers read. */
export class HeadgateGuard implements CanActivate {
  readonly #gate: Gate<NestRequest>;
  /** By controller, then by handler: two controllers may inherit the same handler. */
  readonly #routeGates = new WeakMap<object, WeakMap<object, Gate<NestRequest> | false>>();

  constructor(gate: NestGate) {
    this.#gate = gateForRoute(gate, PEER);
  }

  canActivate(context: ExecutionContext): MaybePromise<boolean> {
    const gate = context.getType() === 'http' && this.#routeGate(context);
    if (gate === false) return true;
    const http = context.switchToHttp();
    const response = http.getResponse<NestResponse>();
    return enterGate<NestRequest, boolean>(gate, http.getRequest<NestRequest>(), {
      response: 'raw' in response ? response.raw : response,
      answer(reply) {
        if ('raw' in response) sendFastifyReply(response, reply);
        else sendReply(response, reply);
        return answered();
      },
      proceed: () => true,
      skip: answered,
    });
  }

  #routeGate(context: ExecutionContext): Gate<NestRequest> | false {
    const controller: Decorated = context.getClass();
    const handler: Decorated = context.getHandler();
    const byHandler = this.#routeGates.get(controller) ?? new WeakMap<object, Gate<NestRequest> | false>();
    this.#routeGates.set(controller, byHandler);
    const known = byHandler.get(handler);
    if (known !== undefined) return known;
    const { [OPTIONS]: all } = controller;
    const { [OPTIONS]: own = all } = handler;
    const gate = own === false ? own : this.#gate.with({ ...(all || {}), ...own });
    byHandler.set(handler, gate);
    return gate;
  }
}

/** Never settles: the request was answered, so Nest must do nothing more for it. */
function answered(): Promise<never> {
  return new Promise(() => {});
}

/**
 * An alternative to the guard: puts the gate behind every guard of a route, the route's own included.
 * @example
 * ```ts
 * @UseGuards(Authenticated)
 * @UseInterceptors(new HeadgateInterceptor(gate))
 * ```
 */
export class HeadgateInterceptor implements NestInterceptor {
  readonly #guard: HeadgateGuard;

  constructor(gate: NestGate) {
    this.#guard = new HeadgateGuard(gate);
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<ReturnType<CallHandler['handle']>> {
    await this.#guard.canActivate(context);
    return next.handle();
  }
}

/**
 * Guards every route of the application.
 * @example
 * ```ts
 * @Module({ imports: [HeadgateModule.forRoot(gate)], controllers: [Emails] })
 * class App {}
 * ```
 */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class HeadgateModule {
  /** Mounts a gate that exists already, or limits by the client's address: `{ perAddress: ['100/1m'] }`. */
  static forRoot(gate: NestGate): DynamicModule {
    return HeadgateModule.forRootAsync({ useFactory: () => gate });
  }

  /** Mounts a gate that is made from what other modules provide. */
  static forRootAsync(options: {
    readonly imports?: ModuleMetadata['imports'];
    readonly inject?: FactoryProvider['inject'];
    // Gets the injected providers, in the order of `inject`.
    readonly useFactory: (...injected: never[]) => NestGate | Promise<NestGate>;
  }): DynamicModule {
    const { imports = [], inject = [], useFactory } = options;
    const make = async (...injected: never[]) => new HeadgateGuard(await useFactory(...injected));
    // The value of APP_GUARD of @nestjs/core, Nest's token for a guard of all routes.
    return { module: HeadgateModule, imports, providers: [{ provide: 'APP_GUARD', useFactory: make, inject }] };
  }
}

/** For a gate's `route`: the template that matched, with the global prefix, `POST /api/v1/chats/:id`. */
export function routeOf(request: NestRequest): string | undefined {
  return 'routeOptions' in Object(request)
    ? routeOfFastify(request as FastifyRequest)
    : routeOfExpress(request as ExpressRequest);
}

/**
 * For a gate's `idempotent` resolver; see `idempotentRequest` of `headgate/node`. Needs {@link readAhead} in front of
 * the parsers.
 */
export const idempotentRequest = /* @__PURE__ */ forContext(nodeRequest, idempotentNodeRequest);
