import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type express from 'express';
import type { FastifyRequest } from 'fastify';
import type { H3Event } from 'h3';
import type { Context } from 'hono';
import type Koa from 'koa';
import { expectTypeOf, it } from 'vitest';
import type { ElysiaRequest } from '../../src/adapters/elysia.ts';
import * as onElysia from '../../src/adapters/elysia.ts';
import * as onExpress from '../../src/adapters/express.ts';
import * as onFastify from '../../src/adapters/fastify.ts';
import * as onH3 from '../../src/adapters/h3.ts';
import * as onHono from '../../src/adapters/hono.ts';
import * as onKoa from '../../src/adapters/koa.ts';
import * as onNest from '../../src/adapters/nest.ts';
import { withHeadgate } from '../../src/adapters/node.ts';
import type { Gate, GateOptions } from '../../src/index.ts';

/** The `route` resolver of a gate for this kind of request. */
type Route<Request> = GateOptions<Request>['route'];

it('the resolvers of each adapter take the request of its framework, with its types of params and body', () => {
  expectTypeOf(onExpress.routeOf).toExtend<Route<express.Request>>();
  expectTypeOf(onFastify.routeOf).toExtend<Route<FastifyRequest>>();
  expectTypeOf(onKoa.routeOf).toExtend<Route<Koa.Context>>();
  expectTypeOf(onHono.routeOf).toExtend<Route<Context>>();
  expectTypeOf(onH3.routeOf).toExtend<Route<H3Event>>();
  expectTypeOf(onElysia.routeOf).toExtend<Route<ElysiaRequest>>();
  expectTypeOf(onNest.routeOf).toExtend<Route<onNest.NestRequest>>();

  type Mail = express.Request<{ id: string }, unknown, { account_id: string }>;
  expectTypeOf<Parameters<GateOptions<Mail>['account']>[0]['params']>().toEqualTypeOf<{ id: string }>();
  expectTypeOf<Parameters<GateOptions<Mail>['account']>[0]['body']>().toEqualTypeOf<{ account_id: string }>();
  expectTypeOf(onExpress.headgate<Mail>)
    .parameter(0)
    .toEqualTypeOf<Gate<Mail> | onExpress.AddressLimits<Mail>>();
  expectTypeOf(onHono.headgate<{ Variables: { user: string } }>)
    .parameter(0)
    .toEqualTypeOf<
      Gate<Context<{ Variables: { user: string } }>> | onHono.AddressLimits<Context<{ Variables: { user: string } }>>
    >();
});

it('behind a gate in Express, the path of a handler decides the type of its params', () => {
  interface Authenticated extends express.Request {
    user: string;
  }
  // Compiled, never run.
  const _mount = (
    router: express.Router,
    gate: Gate<express.Request>,
    own: Gate<Authenticated>,
    other: Gate<Context>,
  ) => {
    router.get('/chats/:id', onExpress.headgate(gate), onExpress.headgate(own), (request) => {
      expectTypeOf(request.params).toEqualTypeOf<{ id: string }>();
    });
    router.use(onExpress.headgate(gate));
    // @ts-expect-error a gate of another framework's requests
    router.use(onExpress.headgate(other));
  };
  expectTypeOf(_mount).returns.toBeVoid();
});

it('a resolver of another request or result type is a type error', () => {
  expectTypeOf<(request: IncomingMessage) => number>().not.toExtend<GateOptions<IncomingMessage>['account']>();
  expectTypeOf(onHono.routeOf).not.toExtend<Route<IncomingMessage>>();
});

it('a handler of HTTP/2 gets a response of HTTP/2', () => {
  type Handler = (request: Http2ServerRequest, response: Http2ServerResponse) => void;
  const wrap = (gate: Gate<Http2ServerRequest>, handler: Handler) => withHeadgate(gate, handler);
  expectTypeOf(wrap).returns.toEqualTypeOf<Handler>();
});

it('a gate for requests of Express or of Fastify alone is a type error in Nest, which has both', () => {
  type ForRoot = Parameters<typeof onNest.HeadgateModule.forRoot>[0];
  expectTypeOf<Gate<onNest.NestRequest>>().toExtend<ForRoot>();
  expectTypeOf<Gate<FastifyRequest>>().not.toExtend<ForRoot>();
  expectTypeOf<Gate<express.Request>>().not.toExtend<ForRoot>();
});
