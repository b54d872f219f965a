// The subpaths that need Node's types, each with its framework or client.
import { createServer, type IncomingMessage } from 'node:http';
import { describe, it } from 'node:test';
import { Elysia } from 'elysia';
import express from 'express';
import * as fc from 'fast-check';
import fastify, { type FastifyRequest } from 'fastify';
import { H3, type H3Event } from 'h3';
import { createGate, createIdempotency, createLimiter } from 'headgate';
import * as ofElysia from 'headgate/elysia';
import * as ofExpress from 'headgate/express';
import * as ofFastify from 'headgate/fastify';
import * as ofH3 from 'headgate/h3';
import * as ofKoa from 'headgate/koa';
import { createMemoryStore } from 'headgate/memory';
import * as ofNode from 'headgate/node';
import { createRedisClaimStore, createRedisStore } from 'headgate/redis';
import { createFakeClock, limitStoreSuite } from 'headgate/testing';
import { Cluster, Redis } from 'ioredis';
import Koa from 'koa';
import { createClient } from 'redis';

const client = new Redis({ lazyConnect: true });
const limiter = createLimiter({ store: createRedisStore(client, { prefix: 'p' }), limits: { allMethods: ['60/1m'] } });
export const others = [createRedisStore(new Cluster([])), createRedisStore(createClient())];
const common = { limiter, idempotency: createIdempotency({ store: createRedisClaimStore(client) }) };
const scope = { scope: 'app_1' };

const nodeGate = createGate<IncomingMessage>({
  ...common,
  account: (request) => request.headers['x-account']?.toString(),
  route: (request) => request.method,
  idempotent: (request) => ofNode.idempotentRequest(request, scope),
});
createServer(ofNode.withHeadgate(nodeGate, (_request, response) => response.end('ok')));

const expressGate = createGate<express.Request>({
  ...common,
  account: (request) => ofExpress.fieldOfBody(request, 'account_id'),
  route: ofExpress.routeOf,
  idempotent: (request) => ofExpress.idempotentRequest(request, scope),
});
const expressApp = express();
expressApp.use(ofExpress.headgate(expressGate));
expressApp.get('/chats/:id', ofExpress.headgate(expressGate, { cost: 2 }), (request, response) => {
  response.send(`${request.params.id} ${ofExpress.passageOf(response)?.decision?.accepted}`);
});

const fastifyGate = createGate<FastifyRequest>({
  ...common,
  account: (request) => request.headers['x-account']?.toString(),
  route: ofFastify.routeOf,
  idempotent: (request) => ofFastify.idempotentRequest(request, scope),
});
const fastifyApp = fastify();
fastifyApp.register(ofFastify.headgate(fastifyGate, { hook: 'preHandler' }));
fastifyApp.get('/chats/:id', { config: { headgate: { cost: 2 } } }, async () => 'chat');
// @ts-expect-error a route's options are checked
fastifyApp.get('/emails', { config: { headgate: { cost: 'two' } } }, async () => 'email');

const koaGate = createGate<Koa.Context>({
  ...common,
  account: (context) => context.get('x-account'),
  route: ofKoa.routeOf,
  idempotent: (context) => ofKoa.idempotentRequest(context, scope),
});
new Koa().use(ofKoa.headgate(koaGate, { route: 'every route' }));

const h3Gate = createGate<H3Event>({
  ...common,
  account: (event) => event.req.headers.get('x-account') ?? undefined,
  route: ofH3.routeOf,
  idempotent: (event) => ofH3.idempotentRequest(event, scope),
});
new H3().use(ofH3.headgate(h3Gate)).get('/', (event) => String(ofH3.passageOf(event)?.decision));

const elysiaGate = createGate<ofElysia.ElysiaRequest>({
  ...common,
  account: ({ request }) => request.headers.get('x-account') ?? undefined,
  route: ofElysia.routeOf,
  idempotent: (given) => ofElysia.idempotentRequest(given, scope),
});
// The types of the app's routes stay the same behind the gate.
const elysiaApp = new Elysia().get('/chats/:id', ({ params }) => params.id).use(ofElysia.headgate(elysiaGate));
export type Paths = keyof (typeof elysiaApp)['~Routes'];
export const path: Paths = 'chats';

limitStoreSuite({ describe, it }, fc, { name: 'mine', create: (clock) => createMemoryStore({ clock }) });
createFakeClock(0).advance(1);
