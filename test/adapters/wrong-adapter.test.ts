import { createServer, type RequestListener } from 'node:http';
import { Elysia } from 'elysia';
import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import fastify from 'fastify';
import { H3 } from 'h3';
import { Hono } from 'hono';
import Koa from 'koa';
import { describe, expect, it } from 'vitest';
import { headgate as ofElysia } from '../../src/adapters/elysia.ts';
import { headgate as ofExpress } from '../../src/adapters/express.ts';
import { headgate as ofFastify } from '../../src/adapters/fastify.ts';
import { headgate as ofFetch } from '../../src/adapters/fetch.ts';
import { headgate as ofH3 } from '../../src/adapters/h3.ts';
import { headgate as ofHono } from '../../src/adapters/hono.ts';
import { headgate as ofKoa } from '../../src/adapters/koa.ts';
import { headgate as ofNode } from '../../src/adapters/node.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

const ADAPTERS: Record<string, (gate: never) => unknown> = {
  elysia: ofElysia,
  express: ofExpress,
  fastify: ofFastify,
  fetch: ofFetch,
  h3: ofH3,
  hono: ofHono,
  koa: ofKoa,
  node: ofNode,
};

/** What an application did with middleware: the error that it was given, and whether its handler ran. */
interface Outcome {
  error?: unknown;
  handled?: boolean;
}

async function overSocket(listener: RequestListener): Promise<void> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await fetch(`http://127.0.0.1:${port}/x`).then((response) => response.text());
  await new Promise((resolve) => server.close(resolve));
}

function inExpress(framework: typeof express): (middleware: never, outcome: Outcome) => Promise<void> {
  return async (middleware, outcome) => {
    const app = framework();
    app.use(middleware);
    app.get('/x', (_, response) => {
      outcome.handled = true;
      response.end();
    });
    app.use(((error, _request, response, _next) => {
      outcome.error = error;
      response.status(500).end();
    }) satisfies express.ErrorRequestHandler);
    await overSocket(app);
  };
}

const FRAMEWORKS: Record<string, (middleware: never, outcome: Outcome) => Promise<void>> = {
  express: inExpress(express),
  'express 4': inExpress(express4 as unknown as typeof express),
  async fastify(middleware, outcome) {
    const app = fastify();
    app.register(middleware);
    app.get('/x', async () => {
      outcome.handled = true;
      return 'ok';
    });
    await app.inject('/x').catch((error) => {
      outcome.error = error;
    });
    await app.close().catch(() => {});
  },
  async koa(middleware, outcome) {
    const app = new Koa();
    app.on('error', (error) => {
      outcome.error = error;
    });
    app.use(middleware);
    app.use((context) => {
      outcome.handled = true;
      context.body = 'ok';
    });
    await overSocket(app.callback());
  },
  async hono(middleware, outcome) {
    const app = new Hono();
    app.onError((error, c) => {
      outcome.error = error;
      return c.text('failed', 500);
    });
    app.use(middleware);
    app.get('/x', (c) => {
      outcome.handled = true;
      return c.text('ok');
    });
    await app.request('/x');
  },
  async h3(middleware, outcome) {
    const app = new H3({
      silent: true,
      onError: (error) => {
        outcome.error = error.cause ?? error;
      },
    });
    app.use(middleware);
    app.get('/x', () => {
      outcome.handled = true;
      return 'ok';
    });
    await app.request('/x');
  },
  async elysia(middleware, outcome) {
    try {
      const app = new Elysia();
      app.use(middleware);
      app.get('/x', () => {
        outcome.handled = true;
        return 'ok';
      });
      await app.handle(new Request('http://localhost/x'));
    } catch (error) {
      outcome.error = error;
    }
  },
};

describe('headgate itself in place of headgate(gate) says so, and no request passes', () => {
  it.each(Object.keys(FRAMEWORKS))('%s', async (framework) => {
    const outcome: Outcome = {};
    await FRAMEWORKS[framework]?.(ADAPTERS[framework.replace(' 4', '')] as never, outcome);
    expect(outcome.handled).toBeUndefined();
    const advice =
      framework === 'fastify' ? 'write app.register(headgate(gate))' : 'mount headgate(gate), not headgate';
    expect(String((outcome.error as Error | undefined)?.message)).toContain(`gate: must be what createGate() returns`);
    expect(String((outcome.error as Error | undefined)?.message)).toContain(`: ${advice}, got an `);
  });
});

/** These take what the framework passes. */
const FITTING = ['express in express', 'express in express 4', 'node in express', 'node in express 4'];

const pairs = Object.keys(ADAPTERS)
  .flatMap((adapter) => Object.keys(FRAMEWORKS).map((framework) => [adapter, framework] as const))
  .filter(([adapter, framework]) => adapter !== framework && !FITTING.includes(`${adapter} in ${framework}`));

describe('headgate of the wrong adapter says so, and no request passes', () => {
  it.each(pairs)('%s in %s', async (adapter, framework) => {
    const gate = createGate<unknown>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['100/1m'] } }),
      account: () => 'a',
      route: () => 'r',
    });
    const outcome: Outcome = {};
    const run = FRAMEWORKS[framework] as (middleware: never, outcome: Outcome) => Promise<void>;
    await run(ADAPTERS[adapter]?.(gate as never) as never, outcome);
    expect(outcome.handled).toBeUndefined();
    expect(String((outcome.error as Error | undefined)?.message)).toMatch(/import .* from your framework's adapter/);
  });
});
