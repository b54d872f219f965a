import 'reflect-metadata';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getRequestListener, type Http2Bindings, type HttpBindings } from '@hono/node-server';
import { All, Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import connect from 'connect';
import { Elysia } from 'elysia';
import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import fastify from 'fastify';
import { H3 } from 'h3';
import { toNodeHandler } from 'h3/node';
import { Hono } from 'hono';
import Koa from 'koa';
import { describe, expect, it } from 'vitest';
import * as onElysia from '../../src/adapters/elysia.ts';
import * as onExpress from '../../src/adapters/express.ts';
import * as onFastify from '../../src/adapters/fastify.ts';
import * as onFetch from '../../src/adapters/fetch.ts';
import * as onH3 from '../../src/adapters/h3.ts';
import * as onHono from '../../src/adapters/hono.ts';
import * as onKoa from '../../src/adapters/koa.ts';
import * as onNest from '../../src/adapters/nest.ts';
import * as onNode from '../../src/adapters/node.ts';
import type { AddressLimits } from '../../src/address/options.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { askFrom, type Target } from '../support/ask-from.ts';

/** What every adapter accepts in the same form. */
type Limits = Pick<AddressLimits<unknown>, 'perAddress' | 'trustedProxies' | 'headers' | 'logger'>;

/** h3 does not expect another server's classes in place of the platform's. */
const OWN_CLASSES = { overrideGlobalObjects: false };

/** Makes an application of a framework, with `limits` in front of all of its paths. */
type CreateApp = (limits: Limits) => RequestListener | Promise<RequestListener>;

const ok = (_: unknown, response: ServerResponse) => void response.end('ok');

async function nestApp(adapter: ExpressAdapter | FastifyAdapter, limits: Limits): Promise<RequestListener> {
  class Things {
    answer() {
      return 'ok';
    }
  }
  All(['/', '/:path'])(
    Things.prototype,
    'answer',
    Object.getOwnPropertyDescriptor(Things.prototype, 'answer') as never,
  );
  Controller()(Things);
  class App {}
  Module({ imports: [onNest.HeadgateModule.forRoot(limits)], controllers: [Things] })(App);
  const app = await NestFactory.create(App, adapter as ExpressAdapter, { logger: false });
  await app.init();
  const instance = app.getHttpAdapter().getInstance();
  if (adapter instanceof ExpressAdapter) return instance;
  await instance.ready();
  return instance.routing;
}

const APPS: Readonly<Record<string, CreateApp>> = {
  connect: (limits) => connect().use(onNode.headgate(limits)).use(ok),
  'node:http': (limits) => onNode.withHeadgate(limits, ok),
  'express 5': (limits) => express().use(onExpress.headgate(limits), ok),
  'express 4': (limits) => (express4 as typeof express)().use(onExpress.headgate(limits), ok),
  koa: (limits) => {
    const app = new Koa().use(onKoa.headgate(limits)).use((context) => {
      context.body = 'ok';
    });
    app.silent = true;
    return app.callback();
  },
  fastify: async (limits) => {
    const app = fastify();
    app.register(onFastify.headgate(limits));
    app.all('*', async () => 'ok');
    await app.ready();
    return app.routing;
  },
  'nest on express': (limits) => nestApp(new ExpressAdapter(), limits),
  'nest on fastify': (limits) => nestApp(new FastifyAdapter(), limits),
  hono: (limits) =>
    getRequestListener(new Hono().use(onHono.headgate(limits)).all('*', (c) => c.text('ok')).fetch, OWN_CLASSES),
  h3: (limits) => toNodeHandler(new H3({ silent: true }).use(onH3.headgate(limits)).all('/**', () => 'ok')) as never,
  // Its server in Node, as Bun's server is in Bun.
  elysia: (limits) => {
    const addresses = new WeakMap<Request, string>();
    const app = new Elysia({ handler: { standardHostname: false } })
      .use(onElysia.headgate(limits))
      .all('*', () => 'ok');
    const requestIP = (request: Request) => ({ address: addresses.get(request) });
    Object.assign(app, { server: { requestIP } });
    return getRequestListener((request, env) => {
      addresses.set(request, env.incoming.socket.remoteAddress ?? '');
      return app.fetch(request);
    }, OWN_CLASSES);
  },
  fetch: (limits) => {
    const limited = onFetch.headgate({
      ...limits,
      address: ({ env }: { request: Request; env: HttpBindings | Http2Bindings }) => env.incoming.socket.remoteAddress,
    });
    return getRequestListener((request, env) => limited({ request, env }, () => new Response('ok')), OWN_CLASSES);
  },
};

/** Serves an application on a free port, or on a Unix socket, for as long as `use` runs. */
async function serving<T>(listener: RequestListener, use: (target: Target) => Promise<T>, socketPath?: string) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(socketPath ?? { port: 0, host: '127.0.0.1' }, resolve));
  try {
    return await use(socketPath === undefined ? { port: (server.address() as AddressInfo).port } : { socketPath });
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

describe.each(Object.entries(APPS))('%s: { perAddress }', (_, createApp) => {
  it('limits each address by itself, all of its routes together', async () => {
    await serving(await createApp({ perAddress: ['2/1m'] }), async (to) => {
      const answers = [
        await askFrom({ ...to, path: '/one' }),
        await askFrom({ ...to, path: '/two' }),
        await askFrom({ ...to, path: '/three' }),
        await askFrom({ ...to, path: '/one', from: '127.0.0.2' }),
      ];
      expect(answers.map(({ status, headers }) => [status, headers['x-ratelimit-remaining']])).toEqual([
        [200, '1'],
        [200, '0'],
        [429, '0'],
        [200, '1'],
      ]);
      expect(answers[2]?.headers['retry-after']).toBe('60');
      expect(JSON.parse(answers[2]?.body ?? '')).toMatchObject({
        type: 'api/too_many_requests',
        detail: 'The rate limit is used up; retry in 60 s.',
      });
    });
  });

  it('behind a trusted proxy the address is the one that the proxy reports', async () => {
    const limits = { perAddress: ['1/1m'], trustedProxies: ['loopback'], headers: [] } as const;
    await serving(await createApp(limits), async (to) => {
      const statusOf = async (client: string) =>
        (await askFrom({ ...to, headers: { 'x-forwarded-for': client } })).status;
      expect(await statusOf('203.0.113.1')).toBe(200);
      expect(await statusOf('203.0.113.1')).toBe(429);
      expect(await statusOf('203.0.113.2')).toBe(200);
      // One household of IPv6, and another one.
      expect(await statusOf('2001:db8:0:100::1')).toBe(200);
      expect(await statusOf('2001:db8:0:1ff::2')).toBe(429);
      expect(await statusOf('2001:db8:0:200::1')).toBe(200);
    });
  });

  it('a request over a Unix socket has no address: it is refused, and the log says what to do', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-'));
    const logged: string[] = [];
    const logger = (_message: string, error: unknown) => void logged.push(String(error));
    try {
      const status = await serving(
        await createApp({ perAddress: ['9/1m'], logger }),
        async (to) => (await askFrom(to)).status,
        join(folder, 'a.sock'),
      );
      expect(status).toBe(500);
      expect(logged).toEqual([expect.stringMatching(/^OptionError: address: the request has none: .*set `address`/)]);
      const behindProxy = { perAddress: ['1/1m'], trustedProxies: 1 };
      const statuses = await serving(
        await createApp(behindProxy),
        async (to) => {
          const headers = { 'x-forwarded-for': '203.0.113.1' };
          return [(await askFrom({ ...to, headers })).status, (await askFrom({ ...to, headers })).status];
        },
        join(folder, 'b.sock'),
      );
      expect(statuses).toEqual([200, 429]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('beside a gate with accounts', () => {
  it('the options of a route, which are meant for accounts, do not lift the limit of an address', async () => {
    const gate = createGate<{ headers: Record<string, unknown> }>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['100/1m'] } }),
      account: () => 'acc_1',
      route: () => 'GET /',
    });
    const app = fastify();
    app.register(onFastify.headgate({ perAddress: ['2/1m'] })).register(onFastify.headgate(gate));
    const cost = () => {
      throw new Error('it may need what is known only behind an authentication');
    };
    const options = { account: () => 'a', route: () => undefined, cost, requireKey: false, allow: () => true } as const;
    app.get('/', { config: { headgate: options } }, async () => 'ok');
    await app.ready();
    const statuses = await serving(app.routing, async (to) => [
      (await askFrom(to)).status,
      (await askFrom(to)).status,
      (await askFrom(to)).status,
    ]);
    expect(statuses).toEqual([200, 200, 429]);
  });

  it('S6: of the two windows, the one with the least left is shown', async () => {
    const gate = createGate<express.Request>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['3/1m'] } }),
      account: () => 'acc_1',
      route: () => 'GET /',
    });
    const app = express().use(onExpress.headgate({ perAddress: ['100/1m'] }), onExpress.headgate(gate), ok);
    const { headers } = await serving(app, (to) => askFrom(to));
    expect([headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']]).toEqual(['3', '2']);
  });

  it('has its own cost beside perAddress, and no options of a route', async () => {
    const app = new Elysia({ handler: { standardHostname: false } })
      .use(
        onElysia.headgate({
          perAddress: ['3/1m'],
          address: () => '203.0.113.1',
          cost: ({ route }) => (route === '/dear' ? 2 : 1),
        }),
      )
      .get('/dear', () => 'ok')
      .get('/', () => 'ok');
    const statusOf = async (path: string) => (await app.handle(new Request(`http://localhost${path}`))).status;
    expect([await statusOf('/dear'), await statusOf('/'), await statusOf('/')]).toEqual([200, 200, 429]);
    expect(() => onExpress.headgate({ perAddress: ['1/1m'] }, { limits: ['1/1m'] })).toThrow(
      /^route options\.limits: unknown option: write it beside perAddress, got an array/,
    );
  });
});

it('an `address` of your own has thought about proxies: no warning if none is trusted', async () => {
  const logged: string[] = [];
  const logger = (message: string) => void logged.push(message);
  const address = (request: Request) => request.headers.get('cf-connecting-ip') ?? undefined;
  const limited = onFetch.withHeadgate({ perAddress: ['1/1m'], address, logger }, () => new Response('ok'));
  const headers = { 'x-forwarded-for': '203.0.113.1', 'cf-connecting-ip': '203.0.113.1' };
  expect([(await limited(new Request('http://localhost/', { headers }))).status, logged]).toEqual([200, []]);
  await serving(express().use(onExpress.headgate({ perAddress: ['1/1m'], logger }), ok), (to) =>
    askFrom({ ...to, headers }),
  );
  expect(logged).toEqual(['headgate: HG_PROXY_NOT_TRUSTED']);
});

it('fetch: the runtime does not say the address, so a function or counted proxies are required', async () => {
  expect(() => onFetch.headgate({ perAddress: ['1/1m'] })).toThrow(
    /^address: must be a function that returns the address of the client, because a web request does not have it; or/,
  );
  const limited = onFetch.withHeadgate({ perAddress: ['1/1m'], trustedProxies: 1 }, () => new Response('ok'));
  const statusOf = async (client: string) =>
    (await limited(new Request('http://localhost/', { headers: { 'x-forwarded-for': client } }))).status;
  expect([await statusOf('203.0.113.1'), await statusOf('203.0.113.1'), await statusOf('203.0.113.2')]).toEqual([
    200, 429, 200,
  ]);
});
