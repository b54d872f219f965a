/**
 * For Nest 11 and 12, on Express and on Fastify.
 * @module headgate/nest
 */

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
import type { Entry, Gate } from '../gate/gate.ts';
import type { RouteOptions } from '../gate/route-options.ts';
import { type ExpressRequest, routeOf as routeOfExpress } from './express.ts';
import { routeOf as routeOfFastify } from './fastify.ts';
import { letPass, passageOf, send } from './node/bridge.ts';
import { answer } from './node/fastify-reply.ts';
import {
  type IdempotentRequestOptions,
  idempotentRequest as nodeIdempotentRequest,
} from './node/idempotent-request.ts';
import { gateOf } from './shared/gate-of.ts';

export { readAhead } from './node/read-ahead.ts';
export { type ReadBodyOptions, servedFromCache } from './node.ts';
export type { IdempotentRequestOptions };
export { passageOf };

/** A request of Nest, on Express or on Fastify. */
export type NestRequest = (ExpressRequest & { readonly body?: unknown }) | FastifyRequest;
type NestResponse = ExpressRequest['res'] | FastifyReply;

/** Where a decorator leaves a route's options, for every copy of this package. */
const OPTIONS = Symbol.for('headgate.nest.options');
type Options = RouteOptions<NestRequest> | false;
type Decorated = object & { readonly [OPTIONS]?: Options };

/**
 * Options of one route, or of every route of a controller, in place of the gate's own; false: no gate.
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

/** Puts a gate in front of the routes that it guards. Behind guards that authenticate, where resolvers want to know the caller. */
export class HeadgateGuard implements CanActivate {
  readonly #gate: Gate<NestRequest>;
  /** By controller and handler: controllers may inherit one. */
  readonly #ofRoute = new WeakMap<object, WeakMap<object, Gate<NestRequest> | false>>();

  constructor(gate: Gate<NestRequest>) {
    this.#gate = gateOf(gate);
  }

  canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    const gate = context.getType() === 'http' && this.#gateOf(context);
    if (gate === false) return true;
    const http = context.switchToHttp();
    const request = http.getRequest<NestRequest>();
    const response = http.getResponse<NonNullable<NestResponse>>();
    const entered = gate.enter(request, undefined, passageOf('raw' in response ? response.raw : response));
    return 'kind' in entered ? goesOn(entered, response) : entered.then((entry) => goesOn(entry, response));
  }

  #gateOf(context: ExecutionContext): Gate<NestRequest> | false {
    const controller: Decorated = context.getClass();
    const handler: Decorated = context.getHandler();
    const ofController = this.#ofRoute.get(controller) ?? new WeakMap<object, Gate<NestRequest> | false>();
    this.#ofRoute.set(controller, ofController);
    const known = ofController.get(handler);
    if (known !== undefined) return known;
    const { [OPTIONS]: all } = controller;
    const { [OPTIONS]: own = all } = handler;
    const gate = own === false ? own : this.#gate.with({ ...(all || {}), ...own });
    ofController.set(handler, gate);
    return gate;
  }
}

/**
 * In place of the guard: puts the gate behind every guard of a route, its own too.
 * @example
 * ```ts
 * @UseGuards(Authenticated)
 * @UseInterceptors(new HeadgateInterceptor(gate))
 * ```
 */
export class HeadgateInterceptor implements NestInterceptor {
  readonly #guard: HeadgateGuard;

  constructor(gate: Gate<NestRequest>) {
    this.#guard = new HeadgateGuard(gate);
  }

  async intercept(context: ExecutionContext, next: CallHandler): Promise<ReturnType<CallHandler['handle']>> {
    await this.#guard.canActivate(context);
    return next.handle();
  }
}

/** Lets the handler run, or answers. */
function goesOn(entry: Entry, response: NonNullable<NestResponse>): boolean | Promise<never> {
  if (entry.kind === 'proceed') {
    if (letPass('raw' in response ? response.raw : response, entry) !== 'gone') return true;
  } else if (!('raw' in response)) send(response, entry.reply);
  else if (!response.sent) answer(response, entry.reply);
  // Never settled: the request was answered, and Nest has nothing more to do for it.
  return new Promise(() => {});
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
  /** For a gate that is there already. */
  static forRoot(gate: Gate<NestRequest>): DynamicModule {
    return HeadgateModule.forRootAsync({ useFactory: () => gate });
  }

  /** For a gate that is made of what other modules provide. */
  static forRootAsync(options: {
    readonly imports?: ModuleMetadata['imports'];
    readonly inject?: FactoryProvider['inject'];
    // What is injected, in that order.
    readonly useFactory: (...injected: never[]) => Gate<NestRequest> | Promise<Gate<NestRequest>>;
  }): DynamicModule {
    const { imports = [], inject = [], useFactory } = options;
    const make = async (...injected: never[]) => new HeadgateGuard(await useFactory(...injected));
    // Nest's own name for a guard of all routes: APP_GUARD of @nestjs/core.
    return { module: HeadgateModule, imports, providers: [{ provide: 'APP_GUARD', useFactory: make, inject }] };
  }
}

/** A gate's `route`: the template that matched, with the global prefix, `POST /api/v1/chats/:id`. */
export function routeOf(request: NestRequest): string | undefined {
  return 'routeOptions' in request ? routeOfFastify(request) : routeOfExpress(request);
}

/** What a gate's `idempotent` resolver returns; needs {@link readAhead} in front of the parsers. */
export function idempotentRequest(request: NestRequest, options: IdempotentRequestOptions) {
  return nodeIdempotentRequest('raw' in request ? request.raw : request, options);
}
