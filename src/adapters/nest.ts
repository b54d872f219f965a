/**
 * For Nest 11 and 12, on Express and on Fastify.
 * @module headgate/nest
 */

import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import {
  type CallHandler,
  type CanActivate,
  type DynamicModule,
  type ExecutionContext,
  type FactoryProvider,
  HttpException,
  type ModuleMetadata,
  type NestInterceptor,
} from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type AddressLimits, isAddressLimits } from '../address/options.ts';
import { OptionError } from '../base/errors.ts';
import { after, type MaybePromise } from '../base/maybe-promise.ts';
import { checkOneOf, checkOptions } from '../base/options.ts';
import type { Gate } from '../gate/gate.ts';
import { checkRouteOptions, type RouteOptions } from '../gate/route-options.ts';
import { type ExpressRequest, routeOf as routeOfExpress } from './express.ts';
import { routeOf as routeOfFastify } from './fastify.ts';
import { enterGate } from './node/bridge.ts';
import { type NodeRequest, nodePeer } from './node/http.ts';
import { idempotentRequest as idempotentNodeRequest } from './node/request.ts';
import { prepareRejection, sendFastifyReply, sendReply } from './node/send.ts';
import { forContext, gateForRoute } from './shared/mount.ts';

export type { AddressLimits } from '../address/options.ts';
export { passageOf, servedFromCache } from './node/bridge.ts';
export { readAhead } from './node/read-ahead.ts';
export type { IdempotentRequestOptions, ReadBodyOptions } from './shared/request.ts';

/** The part of a Fastify request that the adapter uses; `FastifyRequest` fits, also over HTTP/2. */
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
 * A request of Nest, on Express or on Fastify. Only the parts that the adapter uses, because no user installs the types
 * of both platforms.
 */
export type NestRequest = (ExpressRequest & { readonly body?: unknown }) | NestFastifyRequest;

/** A gate, or limits by the client's address. */
export type NestGate = Gate<NestRequest> | AddressLimits<NestRequest>;

const nodeRequest = (request: NestRequest) => ('raw' in request ? request.raw : request);
const PEER = /* @__PURE__ */ nodePeer(nodeRequest);

/** The property in which the decorator stores a route's options; every copy of this package finds it. */
const OPTIONS = Symbol.for('headgate.nest.options');
type Options = RouteOptions<NestRequest> | false;
type Decorated = object & { readonly [OPTIONS]?: Options };

/**
 * Sets the options of one route, or of every route of a controller, in place of the gate's own. On a route of a class
 * with {@link SkipHeadgate}, the gate is mounted again. False: the same as {@link SkipHeadgate}.
 * @throws OptionError, LimitError
 * @example
 * ```ts
 * @Post('emails')
 * @Headgate({ cost: 2 })
 * send() {}
 * ```
 */
export function Headgate(options: Options): MethodDecorator & ClassDecorator {
  if (options !== false) checkRouteOptions(options);
  return (target: object, _name?: string | symbol, descriptor?: { value?: unknown }) => {
    Object.defineProperty(descriptor?.value ?? target, OPTIONS, { value: options, configurable: true });
  };
}

/**
 * No gate for this method, or for every method of this class. For routes without limits, and for contexts other than
 * HTTP: resolvers of GraphQL, and handlers of messages and events.
 */
export function SkipHeadgate(): MethodDecorator & ClassDecorator {
  return Headgate(false);
}

const MARK_IT = 'mark it with @SkipHeadgate(), and call limiter.consume() in it, or in a guard, if it needs limits.';

/**
 * A gate as a guard: it rejects a request before the guards behind it run. Resolvers see only what the guards in front
 * of it set; guards of a controller run behind a guard of the whole application.
 */
export class HeadgateGuard implements CanActivate {
  readonly #gate: Gate<NestRequest>;
  /** By controller, then by handler: two controllers may inherit the same handler. */
  readonly #routeGates = new WeakMap<object, WeakMap<object, Gate<NestRequest> | false>>();

  constructor(gate: NestGate) {
    this.#gate = gateForRoute(gate, PEER);
  }

  /** @throws Error for a context that is not HTTP: it would pass without limits and without notice */
  canActivate(context: ExecutionContext): MaybePromise<boolean> {
    const gate = this.#routeGate(context);
    if (gate === false) return true;
    const type = context.getType<string>();
    if (type === 'http') return enterHttp(gate, context);
    const handler = `${context.getClass().name}.${context.getHandler().name}`;
    throw new Error(`headgate: a gate limits HTTP, but ${handler} is called by "${type}": ${MARK_IT}`);
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

/**
 * A gate as an interceptor: it runs behind every guard of a route, also those of its controller, so resolvers see what
 * the guards set. A request that a guard rejects is not charged.
 * @example
 * ```ts
 * @Module({ providers: [{ provide: APP_INTERCEPTOR, useValue: new HeadgateInterceptor(gate) }] })
 * class App {}
 * ```
 */
export class HeadgateInterceptor implements NestInterceptor {
  readonly #guard: HeadgateGuard;

  constructor(gate: NestGate) {
    this.#guard = new HeadgateGuard(gate);
  }

  intercept(context: ExecutionContext, next: CallHandler): MaybePromise<ReturnType<CallHandler['handle']>> {
    return after(this.#guard.canActivate(context), () => next.handle());
  }
}

/** Nest asks where to mount before the factory runs. */
const CHOOSE_PLACE =
  "must be 'guard' or 'interceptor' for limits by address from a factory: behind guards, the requests that a guard " +
  'rejects are not counted';

/** Options of {@link HeadgateModule}. */
export interface HeadgateModuleOptions {
  /**
   * How the gate is mounted. An interceptor runs behind every guard. A guard runs in front of the guards of controllers
   * and routes, so that a rejected request costs no authentication; the account must then be known without them.
   * @default 'interceptor'; 'guard' for limits by address; a factory that returns such limits has to choose
   */
  readonly as?: 'interceptor' | 'guard' | undefined;
}

/** {@link HeadgateModuleOptions}, and how the gate is made. */
export interface HeadgateModuleAsyncOptions extends HeadgateModuleOptions {
  readonly imports?: ModuleMetadata['imports'];
  readonly inject?: FactoryProvider['inject'];
  /** Gets the injected providers, in the order of `inject`. */
  readonly useFactory: (...injected: never[]) => NestGate | Promise<NestGate>;
}

/** The values of APP_INTERCEPTOR and APP_GUARD of @nestjs/core, Nest's tokens for every route of an application. */
const MOUNTS = {
  interceptor: { provide: 'APP_INTERCEPTOR', create: (gate: NestGate) => new HeadgateInterceptor(gate) },
  guard: { provide: 'APP_GUARD', create: (gate: NestGate) => new HeadgateGuard(gate) },
};

/**
 * Puts a gate in front of every route of the application.
 * @example
 * ```ts
 * @Module({ imports: [HeadgateModule.forRoot(gate)], controllers: [Emails] })
 * class App {}
 * ```
 */
export class HeadgateModule {
  /** Only Nest calls it. */
  constructor() {
    // Nest would import the class itself as a module without a gate, so no request would be limited.
    if (new.target === HeadgateModule)
      throw new OptionError(
        'imports',
        HeadgateModule,
        'must contain HeadgateModule.forRoot(gate)',
        'the class HeadgateModule',
      );
  }

  /**
   * Mounts a gate that exists already, or limits by the client's address: `{ perAddress: ['100/1m'] }`. The application
   * does not start if it contains a handler of messages without {@link SkipHeadgate}.
   * @throws OptionError
   */
  static forRoot(gate: NestGate, options: HeadgateModuleOptions = {}): DynamicModule {
    checkOptions(options, ['as'], 'options');
    // Limits by address need no account, so they can save an authentication.
    const { as = isAddressLimits(gate) ? 'guard' : 'interceptor' } = options;
    return HeadgateModule.forRootAsync({ ...options, as, useFactory: () => gate });
  }

  /**
   * Mounts a gate that is made from what other modules provide.
   * @throws OptionError
   */
  static forRootAsync(options: HeadgateModuleAsyncOptions): DynamicModule {
    checkOptions(options, ['as', 'imports', 'inject', 'useFactory'], 'options');
    const { as = 'interceptor', imports = [], inject = [], useFactory } = options;
    if (typeof useFactory !== 'function') throw new OptionError('useFactory', useFactory, 'must be a function');
    const isChosen = options.as !== undefined;
    checkOneOf('as', as, Object.keys(MOUNTS));
    const { provide, create } = MOUNTS[as];
    const make = async (modules: ModulesContainer, ...injected: never[]) => {
      checkHandlers(modules);
      const gate = await useFactory(...injected);
      if (!isChosen && isAddressLimits(gate)) throw new OptionError('as', options.as, CHOOSE_PLACE);
      return create(gate);
    };
    return {
      module: HeadgateRootModule,
      imports,
      providers: [{ provide, useFactory: make, inject: [ModulesContainer, ...inject] }],
    };
  }
}

/** Metadata of the handlers of `@nestjs/microservices` and of `@nestjs/websockets`. */
const MESSAGES = ['microservices:pattern', 'websockets:message_mapping'];

/**
 * Finds handlers of messages at the start. Nest applies the guards and interceptors of an application neither to
 * WebSockets nor, without `inheritAppConfig`, to the microservices of a hybrid application: such handlers would run
 * without limits and without notice.
 * @throws OptionError
 */
function checkHandlers(modules: ModulesContainer): void {
  const found = new Set<string>();
  for (const { controllers, providers } of modules.values())
    for (const { metatype } of [...controllers.values(), ...providers.values()])
      for (const name of messageHandlers(metatype)) found.add(name);
  if (found.size === 0) return;
  throw new OptionError(
    'controllers',
    undefined,
    `a gate limits HTTP, and no messages: ${MARK_IT}`,
    [...found].join(', '),
  );
}

/** The handlers of messages without {@link SkipHeadgate} of a class; none for a provider that is no class. */
function messageHandlers(given: unknown): string[] {
  if (typeof given !== 'function') return [];
  const type = given as Decorated & { readonly name: string; readonly prototype?: object };
  const { hasMetadata } = Reflect as { hasMetadata?: (key: string, target: object) => boolean };
  const methods = new Map<string, unknown>();
  for (let of = type.prototype; of && of !== Object.prototype; of = Object.getPrototypeOf(of))
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(of)))
      if (!methods.has(name)) methods.set(name, value);
  return [...methods].flatMap(([name, method]) => {
    if (typeof method !== 'function' || !MESSAGES.some((key) => hasMetadata?.(key, method))) return [];
    const { [OPTIONS]: options = type[OPTIONS] } = method as Decorated;
    return options === false ? [] : [`${type.name}.${name}`];
  });
}

/** The module with a gate. */
class HeadgateRootModule extends HeadgateModule {}

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

/** Takes a request through a gate. If the gate answers it, the promise never settles: Nest must do nothing more. */
function enterHttp(gate: Gate<NestRequest>, context: ExecutionContext): MaybePromise<boolean> {
  const http = context.switchToHttp();
  const response = http.getResponse<ServerResponse | FastifyReply>();
  const answered = () => new Promise<never>(() => {});
  return enterGate<NestRequest, boolean>(gate, http.getRequest<NestRequest>(), {
    response: 'raw' in response ? response.raw : response,
    answer(reply) {
      if ('raw' in response) sendFastifyReply(response, reply);
      else sendReply(response, reply);
      return answered();
    },
    reject(error) {
      if (!prepareRejection(response, error)) return answered();
      throw new HttpException(error.problem, error.status, { cause: error });
    },
    proceed: () => true,
    skip: answered,
  });
}
