import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { connect as tcp } from 'node:net';
import Router from '@koa/router';
import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import fastify, { type FastifyRequest } from 'fastify';
import { type Listening, listen } from 'headgate-testbed/listen';
import Koa from 'koa';
import { afterEach, describe, expect, it } from 'vitest';
import { headgate, routeOf } from '../../../src/adapters/express.ts';
import * as onFastify from '../../../src/adapters/fastify.ts';
import * as onKoa from '../../../src/adapters/koa.ts';
import { idempotentRequest, withHeadgate } from '../../../src/adapters/node.ts';
import { createGate, createIdempotency, createLimiter } from '../../../src/index.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';

const open: Listening[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

const routes: string[] = [];
function gateOf<Request>(route: (request: Request) => string | undefined) {
  routes.length = 0;
  return createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } }),
    account: () => 'a',
    route,
    onEvent: (event) => {
      if (event.type === 'decision') routes.push(event.decision.route);
    },
  });
}

async function serve(listener: Parameters<typeof listen>[0]): Promise<Listening> {
  const server = await listen(listener);
  open.push(server);
  return server;
}

describe.each([
  ['express 5', express],
  ['express 4', express4 as typeof express],
])('routeOf in %s', (_name, create) => {
  it('returns the template with the mount path of its router; HEAD counts as its GET', async () => {
    const gate = gateOf<express.Request>(routeOf);
    const router = create.Router();
    router.get('/things/:id', headgate(gate), (_, response) => void response.send('ok'));
    router.get('/', headgate(gate), (_, response) => void response.send('ok'));
    const { url } = await serve(create().set('env', 'test').use('/api', router));
    await fetch(`${url}/api/things/7?x=1`);
    await fetch(`${url}/api/things/8`, { method: 'HEAD' });
    await fetch(`${url}/api`);
    expect(routes).toEqual(['GET /api/things/:id', 'GET /api/things/:id', 'GET /api']);
  });

  it('returns the same name, however a client spells the mount path of routers and applications', async () => {
    const gate = gateOf<express.Request>(routeOf);
    const [app, inner] = [create().set('env', 'test'), create().set('env', 'test')];
    const [strict, router] = [create.Router({ caseSensitive: true }), create.Router()];
    router.post('/Emails', headgate(gate), (_, response) => void response.send('ok'));
    app.use('/caf%C3%A9', inner.use('/API/', strict.use('/', create.Router().use('/v1', router))));
    const { url } = await serve(app);
    const mounts = ['/caf%C3%A9/API/v1', '/CAF%c3%a9/api/V1', '/caf%C3%A9//API//v1', '/%63af%C3%A9/API/v1'];
    const answered: number[] = [];
    for (const path of mounts.flatMap((mount) => [`${mount}/Emails`, `${mount}/emaiLs/`, `${mount}//Emails`])) {
      answered.push((await fetch(url + path, { method: 'POST' })).status);
    }
    expect(answered.slice(0, 5)).toEqual([200, 200, expect.any(Number), 200, 200]);
    expect([...new Set(routes)]).toEqual(['POST /caf%c3%a9/api/v1/Emails']);
  });

  it('throws if the route sees a parameter of its mount, because every id would be a route of its own', async () => {
    const gate = gateOf<express.Request>(routeOf);
    const router = create.Router({ mergeParams: true });
    router.get('/chats/:chatid', headgate(gate), (_, response) => void response.send('ok'));
    router.get('/named/:chatid', headgate(gate, { route: 'named' }), (_, response) => void response.send('ok'));
    router.get(
      /* Each version has its own wildcard. */ create === express ? '/files/*path' : '/files/*',
      headgate(gate),
      (_, response) => {
        response.send('ok');
      },
    );
    const app = create().set('env', 'test').use('/users/:id', router).use('/all', router);
    const { url } = await serve(app);
    const ask = async (path: string) => (await fetch(url + path)).status;
    expect([await ask('/users/7/chats/1'), await ask('/users/7/named/1')]).toEqual([500, 200]);
    expect([await ask('/all/chats/1'), await ask('/all/files/a/b')]).toEqual([200, 200]);
    expect(routes).toEqual(['named', 'GET /all/chats/:chatid', expect.stringMatching(/^GET \/all\/files\/\*/)]);
  });

  it('throws outside a route: the answer is 500, and no request passes without limits; a route name in the options works', async () => {
    const gate = gateOf<express.Request>(routeOf);
    const app = create().set('env', 'test');
    app.use('/named', headgate(gate, { route: 'everything' }));
    app.get('/named', (_, response) => void response.send('ok'));
    app.use(headgate(gate), (_, response) => void response.send('ok'));
    const { url } = await serve(app);
    expect((await fetch(`${url}/named`)).status).toBe(200);
    expect((await fetch(`${url}/x`)).status).toBe(500);
    expect(routes).toEqual(['everything']);
  });
});

describe('in Koa', () => {
  it('routeOf returns the template with its prefix, and throws outside a route', async () => {
    const gate = gateOf<Koa.Context>(onKoa.routeOf);
    const router = new Router({ prefix: '/api' });
    router.get('/things/:id', onKoa.headgate<Koa.Context>(gate), (context) => {
      context.body = 'ok';
    });
    const app = Object.assign(new Koa(), { silent: true });
    app.use(router.routes()).use(onKoa.headgate<Koa.Context>(gate));
    const { url } = await serve(app.callback());
    await fetch(`${url}/api/things/7`);
    expect((await fetch(`${url}/x`)).status).toBe(500);
    expect(routes).toEqual(['GET /api/things/:id']);
  });

  it('behind router.use, routeOf returns the template of the route that answers, with every prefix', async () => {
    const gate = gateOf<Koa.Context>(onKoa.routeOf);
    const answers = (context: Koa.Context) => {
      context.body = 'ok';
    };
    const [router, inner] = [new Router({ prefix: '/api' }), new Router()];
    inner.use(onKoa.headgate<Koa.Context>(gate));
    inner.get('/mine', answers).get('/:id', answers).post('/:id', answers);
    router.use('/things', (_, next) => next()).use('/things', inner.routes());
    const late = new Router().use(onKoa.headgate<Koa.Context>(gate)).get(/^\/x/, answers);
    const app = Object.assign(new Koa(), { silent: true }).use(router.routes()).use(late.routes());
    app.use(router.allowedMethods());
    const { url } = await serve(app.callback());
    const ask = async (path: string, method = 'GET') => (await fetch(url + path, { method })).status;
    expect([await ask('/api/things/7', 'POST'), await ask('/api/things/mine')]).toEqual([200, 200]);
    expect([await ask('/api/things/7', 'HEAD'), await ask('/api/things/7', 'PUT')]).toEqual([200, 405]);
    expect(await ask('/x')).toBe(500);
    expect(routes).toEqual(['POST /api/things/:id', 'GET /api/things/mine', 'GET /api/things/:id']);
  });

  it('under koa-mount the template begins with the mount path; behind the mount it does not', async () => {
    const named: string[] = [];
    const [mounted, behind] = [new Router(), new Router()];
    mounted.get('/:id', (context, next) => {
      named.push(onKoa.routeOf(context));
      return next();
    });
    behind.get('/v1/:any', (context) => {
      named.push(onKoa.routeOf(context));
      context.body = 'ok';
    });
    // The changes that koa-mount makes to a context.
    const mount: Koa.Middleware = async (context, next) => {
      const { path } = context;
      Object.assign(context, { mountPath: '/v1', path: path.replace('/v1', '') });
      await mounted.routes()(context as never, async () => {
        context.path = path;
        await next();
      });
    };
    const { url } = await serve(new Koa().use(mount).use(behind.routes()).callback());
    await fetch(`${url}/v1/7?x=1`);
    expect(named).toEqual(['GET /v1/:id', 'GET /v1/:any']);
  });

  it('S12: middleware in front sees answers of the gate; servedFromCache, passageOf and fieldOfBody work', async () => {
    const gate = gateOf<Koa.Context>(() => 'r').with({
      account: (context) => (context.method === 'POST' ? onKoa.fieldOfBody(context, 'account') : 'a'),
    });
    const seen: unknown[] = [];
    const app = new Koa()
      .use(async (context, next) => {
        await next();
        seen.push(context.status);
        context.set('x-own', '1');
      })
      .use(onKoa.headgate<Koa.Context>(gate))
      .use((context) => {
        if (context.path === '/cached') onKoa.servedFromCache(context);
        context.body = String(onKoa.passageOf(context)?.decision?.shown?.remaining);
      });
    const { url } = await serve(app.callback());
    const texts: string[] = [];
    for (let i = 0; i < 6; i++) texts.push(await (await fetch(`${url}/${i === 0 ? 'cached' : ''}`)).text());
    expect(texts).toEqual(['4', '4', '3', '2', '1', '0']);
    const rejected = await fetch(url);
    expect([rejected.status, rejected.headers.get('x-own'), seen.at(-1)]).toEqual([429, '1', 429]);
    const refused = await fetch(url, { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } });
    expect(refused.status).toBe(422);
  });

  it('I4: the replay of an answer to HEAD has no made-up content-length', async () => {
    const gate = createGate<Koa.Context>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { unlimited: true } }),
      account: () => undefined,
      route: () => undefined,
      idempotency: createIdempotency({ store: createMemoryClaimStore() }),
      idempotent: (context) => onKoa.idempotentRequest(context, { scope: 'app_1' }),
    });
    const app = new Koa().use(onKoa.headgate<Koa.Context>(gate)).use((context) => {
      context.body = 'four';
    });
    const { url } = await serve(app.callback());
    const ask = () => fetch(url, { method: 'HEAD', headers: { 'idempotency-key': 'k' } });
    const [first, second] = [await ask(), await ask()];
    expect([first.headers.get('content-length'), second.headers.get('content-length')]).toEqual(['4', null]);
    expect([second.status, second.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
  });
});

/** Servers with a gate in front of everything. Each calls `asked` per request that reaches its handler. */
const UPGRADED: Record<string, (asked: () => void) => RequestListener | Promise<RequestListener>> = {
  'node:http': (asked) =>
    withHeadgate(
      gateOf<IncomingMessage>(() => 'POST /x'),
      asked,
    ),
  'express 5': (asked) => express().use(headgate(gateOf<express.Request>(() => 'POST /x')), asked),
  'express 4': (asked) => (express4 as typeof express)().use(headgate(gateOf<express.Request>(() => 'POST /x')), asked),
  koa: (asked) =>
    new Koa()
      .use(onKoa.headgate(gateOf<Koa.Context>(() => 'POST /x')))
      .use(asked)
      .callback(),
  fastify: async (asked) => {
    const app = fastify();
    await app.register(onFastify.headgate(gateOf<FastifyRequest>(() => 'POST /x')));
    app.all('*', async () => asked());
    await app.ready();
    return (request, response) => app.routing(request, response);
  },
};

describe('an upgraded connection', () => {
  it.each(Object.entries(UPGRADED))(
    'goes to the upgrade listener of the server and not to the gate, in %s',
    async (_name, create) => {
      let asked = 0;
      const listener = await create(() => {
        asked++;
      });
      const { server, port } = await serve(listener);
      let upgraded: { destroy(): unknown } | undefined;
      server.on('upgrade', (_, socket) => {
        upgraded = socket;
        socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello');
        socket.on('data', (chunk) => socket.write(chunk));
      });
      const socket = tcp(port, '127.0.0.1');
      socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      await expect.poll(() => text).toMatch(/101 Switching.*hello$/s);
      socket.write('echo');
      await expect.poll(() => text).toMatch(/helloecho$/);
      expect([routes, asked]).toEqual([[], 0]);
      socket.destroy();
      upgraded?.destroy();
      await once(socket, 'close');
    },
  );

  it('with a key, works in a handler that takes over the socket and writes to it', async () => {
    const gate = createGate<IncomingMessage>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { unlimited: true } }),
      account: () => undefined,
      route: () => undefined,
      idempotency: createIdempotency({ store: createMemoryClaimStore() }),
      idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
    });
    // Without a listener for upgrades Node gives the request to the handler.
    const { port } = await serve(
      withHeadgate(gate, (_request, response) => {
        const { socket } = response;
        socket?.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello');
        socket?.on('data', (chunk) => socket.write(chunk));
      }),
    );
    const socket = tcp(port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await expect.poll(() => text).toMatch(/101 Switching.*hello$/s);
    socket.destroy();
    await once(socket, 'close');
  });
});
