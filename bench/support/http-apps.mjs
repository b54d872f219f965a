// The same handler in each framework: bare, behind headgate with four windows, and behind the framework's own limiter
// with one.
import { createServer } from 'node:http';
import { createGate, createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { requirePeer } from 'headgate-bench/peers';

/** A limit that is never reached, because the benchmark measures requests that are accepted. */
const MANY = 1_000_000_000;
const MINUTE_MS = 60_000;
const WINDOWS = [`${MANY}/1m`, `${MANY}/1d`];
const BODY = 'ok';

/** @param header `(request, name)`: reads a header of the framework's request */
function makeGate(header, route = () => 'GET /') {
  const limits = { allMethods: WINDOWS, routes: { 'GET /': WINDOWS } };
  const limiter = createLimiter({ store: createMemoryStore(), limits });
  return createGate({ limiter, account: (request) => header(request, 'x-account'), route });
}

const nodeHeader = (request, name) => request.headers[name];

function listen(server) {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
}

function plain(_request, response) {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': String(BODY.length) });
  response.end(BODY);
}

async function express(mount) {
  const { default: create } = await import('express');
  const app = create();
  const handler = (_request, response) => response.type('text/plain').send(BODY);
  app.get('/', ...(await mount()), handler);
  return listen(createServer(app));
}

async function fastify(register) {
  const { default: create } = await import('fastify');
  const app = create();
  await register(app);
  app.get('/', async (_request, reply) => reply.type('text/plain').send(BODY));
  await app.listen({ host: '127.0.0.1', port: 0 });
  return app.server.address().port;
}

async function koa(mount) {
  const { default: Koa } = await import('koa');
  const app = new Koa();
  for (const middleware of await mount()) app.use(middleware);
  app.use((context) => {
    context.body = BODY;
  });
  return listen(createServer(app.callback()));
}

async function hono(mount) {
  const { Hono } = await import('hono');
  const { createAdaptorServer } = await import('@hono/node-server');
  const app = new Hono();
  app.get('/', ...(await mount()), (c) => c.text(BODY));
  return listen(createAdaptorServer({ fetch: app.fetch }));
}

async function h3(mount) {
  const { H3, toNodeHandler } = await import('h3');
  const app = new H3();
  app.get('/', () => BODY, { middleware: await mount() });
  return listen(createServer(toNodeHandler(app)));
}

/** @param parts `imports` and `providers` of the module */
async function nest(parts) {
  await import('reflect-metadata');
  const { Controller, Get, Module } = await import('@nestjs/common');
  const { NestFactory } = await import('@nestjs/core');
  // The decorators are called as functions, because this file is plain JavaScript.
  class Things {
    answer() {
      return BODY;
    }
  }
  Get('/')(Things.prototype, 'answer', Object.getOwnPropertyDescriptor(Things.prototype, 'answer'));
  Controller()(Things);
  class App {}
  Module({ controllers: [Things], ...(await parts()) })(App);
  const app = await NestFactory.create(App, { logger: false });
  await app.listen(0, '127.0.0.1');
  return app.getHttpServer().address().port;
}

async function nestWithHeadgate(options) {
  const { HeadgateModule, routeOf } = await import('headgate/nest');
  return nest(() => ({ imports: [HeadgateModule.forRoot(makeGate(nodeHeader, routeOf), options)] }));
}

const none = () => [];

/**
 * By framework and candidate, a function that starts the server and resolves to its port. The peer of each framework is
 * the limiter that its users usually choose.
 */
export const HTTP_APPS = {
  'node:http': {
    bare: () => listen(createServer(plain)),
    headgate: async () => {
      const { withHeadgate } = await import('headgate/node');
      return listen(createServer(withHeadgate(makeGate(nodeHeader), plain)));
    },
  },
  Fastify: {
    bare: () => fastify(none),
    headgate: async () => {
      const { headgate, routeOf } = await import('headgate/fastify');
      return fastify((app) => app.register(headgate(makeGate(nodeHeader, routeOf))));
    },
    '@fastify/rate-limit': () =>
      fastify((app) =>
        app.register(requirePeer('@fastify/rate-limit'), {
          max: MANY,
          timeWindow: MINUTE_MS,
          keyGenerator: (request) => nodeHeader(request, 'x-account'),
        }),
      ),
  },
  Hono: {
    bare: () => hono(none),
    headgate: async () => {
      const { headgate, routeOf } = await import('headgate/hono');
      return hono(() => [headgate(makeGate((c, name) => c.req.header(name), routeOf))]);
    },
    'hono-rate-limiter': () =>
      hono(() => [
        requirePeer('hono-rate-limiter').rateLimiter({
          limit: MANY,
          windowMs: MINUTE_MS,
          keyGenerator: (c) => c.req.header('x-account'),
        }),
      ]),
  },
  'Express 5': {
    bare: () => express(none),
    headgate: async () => {
      const { headgate, routeOf } = await import('headgate/express');
      return express(() => [headgate(makeGate(nodeHeader, routeOf))]);
    },
    'express-rate-limit': () =>
      express(() => [
        requirePeer('express-rate-limit').rateLimit({
          limit: MANY,
          windowMs: MINUTE_MS,
          keyGenerator: (request) => nodeHeader(request, 'x-account'),
        }),
      ]),
  },
  'Nest on Express': {
    bare: () => nest(() => ({})),
    'empty interceptor': () =>
      nest(async () => {
        const { APP_INTERCEPTOR } = await import('@nestjs/core');
        return { providers: [{ provide: APP_INTERCEPTOR, useValue: { intercept: (_, next) => next.handle() } }] };
      }),
    headgate: () => nestWithHeadgate(),
    'headgate, as a guard': () => nestWithHeadgate({ as: 'guard' }),
    '@nestjs/throttler': () =>
      nest(async () => {
        const { APP_GUARD } = await import('@nestjs/core');
        const { ThrottlerGuard, ThrottlerModule } = requirePeer('@nestjs/throttler');
        const getTracker = (request) => nodeHeader(request, 'x-account');
        return {
          imports: [ThrottlerModule.forRoot({ throttlers: [{ ttl: MINUTE_MS, limit: MANY }], getTracker })],
          providers: [{ provide: APP_GUARD, useClass: ThrottlerGuard }],
        };
      }),
  },
  Koa: {
    bare: () => koa(none),
    headgate: async () => {
      const { headgate } = await import('headgate/koa');
      return koa(() => [headgate(makeGate((context, name) => context.get(name)))]);
    },
  },
  h3: {
    bare: () => h3(none),
    headgate: async () => {
      const { headgate } = await import('headgate/h3');
      return h3(() => [headgate(makeGate(({ req }, name) => req.headers.get(name)))]);
    },
  },
};
