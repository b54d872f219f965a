import { Controller, Get, Catch as NestCatch, HttpException as NestException } from '@nestjs/common';
import { HttpAdapterHost, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Elysia } from 'elysia';
import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import fastify from 'fastify';
import { H3 } from 'h3';
import { listen } from 'headgate-testbed/listen';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import Koa from 'koa';
import { afterEach, describe, expect, it } from 'vitest';
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
import { rejectionOf } from '../../src/gate/index.ts';
import { createGate, createIdempotency, createLimiter, type Gate, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { decorate } from '../support/nest-app.ts';

/** For the requests of every framework, because its resolvers read none. */
type AnyGate = Gate<unknown> | AddressLimits<unknown>;
type Ask = (headers?: Record<string, string>) => Promise<Response>;
/** An app with these gates, one behind the other, and with an error handler of its own, or with the framework's. */
type Start = (gates: readonly AnyGate[], handled: Handled | undefined) => Promise<Ask>;

/** The application's own format: it reads the error, and sets no field. */
interface Handled {
  readonly status: number;
  of(error: unknown): object;
}

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

const serve = async (listener: Parameters<typeof listen>[0]): Promise<Ask> => {
  const { url, close } = await listen(listener);
  open.push(close);
  return (headers = {}) => fetch(url, { headers });
};

const onExpressApp =
  (create: typeof express): Start =>
  async (gates, handled) => {
    const app = create().set('env', 'test');
    for (const gate of gates) app.use(onExpress.headgate(gate));
    app.get('/', (_request, response) => void response.send('ok'));
    if (handled !== undefined)
      app.use(((error, _request, response, _next) => {
        response.status(handled.status).json(handled.of(error));
      }) as express.ErrorRequestHandler);
    return serve(app);
  };

const onNestApp =
  (as: 'guard' | 'interceptor', create: () => ExpressAdapter | FastifyAdapter): Start =>
  async (gates, handled) => {
    class Things {
      get(): string {
        return 'ok';
      }
    }
    Controller()(Things);
    decorate(Things, 'get', Get());
    const imports = gates.map((gate) => onNest.HeadgateModule.forRoot(gate, { as }));
    const root = { module: class App {}, imports, controllers: [Things] };
    const app = await NestFactory.create(root, create() as ExpressAdapter, {
      logger: false,
      forceCloseConnections: true,
    });
    if (handled !== undefined) {
      class Filter {
        catch(error: unknown, host: { switchToHttp(): { getResponse(): never } }): void {
          const { httpAdapter } = app.get<{ httpAdapter: ExpressAdapter }>(HttpAdapterHost);
          httpAdapter.reply(host.switchToHttp().getResponse(), handled?.of(error), handled?.status);
        }
      }
      NestCatch(NestException)(Filter);
      app.useGlobalFilters(new Filter() as never);
    }
    await app.listen(0, '127.0.0.1');
    open.push(() => app.close());
    const url = await app.getUrl();
    return (headers = {}) => fetch(url, { headers });
  };

const FRAMEWORKS: Readonly<Record<string, Start>> = {
  'express 5': onExpressApp(express),
  'express 4': onExpressApp(express4 as typeof express),
  async fastify(gates, handled) {
    const app = fastify();
    if (handled !== undefined)
      app.setErrorHandler((error, _request, reply) => reply.code(handled.status).send(handled.of(error)));
    for (const gate of gates) app.register(onFastify.headgate(gate));
    app.get('/', async () => 'ok');
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    open.push(() => app.close());
    return (headers = {}) => fetch(url, { headers });
  },
  async koa(gates, handled) {
    const app = new Koa();
    if (handled !== undefined)
      app.use(async (context, next) => {
        try {
          await next();
        } catch (error) {
          context.status = handled.status;
          context.body = handled.of(error);
        }
      });
    for (const gate of gates) app.use(onKoa.headgate(gate));
    app.use((context) => {
      context.body = 'ok';
    });
    return serve(app.callback());
  },
  'nest on express, guard': onNestApp('guard', () => new ExpressAdapter()),
  'nest on fastify, interceptor': onNestApp('interceptor', () => new FastifyAdapter()),
  async hono(gates, handled) {
    const app = new Hono();
    if (handled !== undefined)
      app.onError((error, c) => {
        expect(error).toBeInstanceOf(HTTPException);
        return c.json(handled.of(error), handled.status as 418);
      });
    for (const gate of gates) app.use(onHono.headgate(gate));
    app.get('/', (c) => c.text('ok'));
    return async (headers = {}) => app.request('/', { headers });
  },
  async h3(gates, handled) {
    const app = new H3(
      handled && {
        onError: (error, event) => {
          event.res.status = handled.status;
          return handled.of(error);
        },
      },
    );
    for (const gate of gates) app.use(onH3.headgate(gate));
    app.get('/', () => 'ok');
    return async (headers = {}) => app.request('/', { headers });
  },
  async elysia(gates, handled) {
    const app = new Elysia();
    if (handled !== undefined)
      app.onError(({ error, set }) => {
        set.status = handled.status;
        return handled.of(error);
      });
    for (const gate of gates) app.use(onElysia.headgate(gate));
    app.get('/', () => 'ok');
    return (headers = {}) => app.handle(new Request('http://localhost/', { headers }));
  },
};

type Options = Partial<GateOptions<unknown>>;
const gateOf = (max: number, options: Options = {}): Gate<unknown> =>
  createGate<unknown>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: [`${max}/1m`] } }),
    account: () => 'acc_1',
    route: () => 'GET /',
    logger: false,
    rejection: 'throw',
    ...options,
  });

/** What the application's own answer shows of an error. */
const shown = (error: unknown): object => {
  const { status, statusCode, headers, problem, decision, message } = Object(rejectionOf(error));
  return { status, statusCode, headers, problem, account: decision?.account, message, mine: true };
};
const HANDLED: Handled = { status: 418, of: shown };

describe.each(Object.entries(FRAMEWORKS))("rejection: 'throw' in %s", (_name, start) => {
  it("the application's error handler answers; the fields are on its response", async () => {
    const ask = await start([gateOf(1)], HANDLED);
    expect((await ask()).status).toBe(200);
    const answer = await ask();
    const fields = { 'retry-after': '60', 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0' };
    expect(await answer.json()).toEqual({
      status: 429,
      statusCode: 429,
      headers: { 'cache-control': 'no-store', 'x-ratelimit-reset': '60', ...fields },
      problem: expect.objectContaining({ status: 429, type: 'api/too_many_requests', req_id: expect.any(String) }),
      account: 'acc_1',
      message: 'The rate limit is used up; retry in 60 s.',
      mine: true,
    });
    expect(answer.status).toBe(418);
    expect(Object.fromEntries(answer.headers)).toMatchObject(fields);
  });

  it('without one, the framework answers with the status and the fields', async () => {
    const ask = await start([gateOf(1)], undefined);
    expect((await ask()).status).toBe(200);
    const { status, headers } = await ask();
    expect([status, headers.get('retry-after'), headers.get('x-ratelimit-limit')]).toEqual([429, '60', '1']);
  });

  it('a request without an account, and limits by address, too', async () => {
    const nobody = await start([gateOf(1, { account: () => undefined })], HANDLED);
    expect(await (await nobody()).json()).toMatchObject({
      problem: { type: 'errors/missing_credentials' },
      mine: true,
    });
    const ask = await start([{ perAddress: ['0/1m'], address: () => '192.0.2.1', rejection: 'throw' }], HANDLED);
    expect(await (await ask()).json()).toMatchObject({
      problem: { type: 'api/cost_exceeds_limit' },
      account: '192.0.2.1',
    });
  });

  it('I6: a gate in front releases its key, whatever the status of the error handler', async () => {
    let isFull = true;
    const outer = gateOf(9, {
      rejection: 'answer',
      idempotency: createIdempotency({ store: createMemoryClaimStore() }),
      idempotent: () => ({ scope: 's', key: 'k', fingerprint: { value: 'f' } as never }),
    });
    const inner = gateOf(1, { cost: () => (isFull ? 2 : 1) });
    const ask = await start([outer, inner], { status: 200, of: shown });
    expect(await (await ask()).text()).toContain('api/cost_exceeds_limit');
    isFull = false;
    const retry = await ask();
    expect([await retry.text(), retry.headers.get('idempotency-replayed')]).toEqual(['ok', null]);
  });
});

describe('where no framework handles errors', () => {
  it('the gate is refused when it is mounted', () => {
    const gate = gateOf(1);
    const message = /rejection: must be 'answer' here: no framework handles the errors of the gate/;
    expect(() => onNode.withHeadgate(gate as never, () => {})).toThrow(message);
    expect(() => onFetch.withHeadgate(gate, () => new Response())).toThrow(message);
    expect(() => onFetch.headgate(gate)).toThrow(message);
    expect(() => onFetch.withHeadgate(gate, () => new Response(), { rejection: 'answer' })).not.toThrow();
  });
});

it("the option is 'answer' or 'throw', and not with answer", () => {
  expect(() => gateOf(1, { rejection: 'next' as never })).toThrow(
    'rejection: must be one of answer, throw, got "next"',
  );
  expect(() => gateOf(1, { answer: () => undefined })).toThrow('rejection: must not be given with answer');
});

it('rejectionOf: undefined for any other error', () => {
  expect([undefined, null, 'text', new Error('x', { cause: new Error('y') })].map(rejectionOf)).toEqual([
    ...Array.from({ length: 4 }, () => undefined),
  ]);
});
