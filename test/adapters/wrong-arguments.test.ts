import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import * as elysia from '../../src/adapters/elysia.ts';
import * as express from '../../src/adapters/express.ts';
import * as fastify from '../../src/adapters/fastify.ts';
import * as web from '../../src/adapters/fetch.ts';
import * as h3 from '../../src/adapters/h3.ts';
import * as hono from '../../src/adapters/hono.ts';
import * as koa from '../../src/adapters/koa.ts';
import * as nest from '../../src/adapters/nest.ts';
import * as node from '../../src/adapters/node.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { NOT_OPTIONS } from '../support/not-options.ts';

const nodeRequest = new IncomingMessage(new Socket());
const nodeResponse = new ServerResponse(nodeRequest);
const webRequest = new Request('http://localhost/', { method: 'POST', headers: { 'idempotency-key': 'k' } });

/** What the helpers of the other platform's adapters take, and nothing at all. */
const NOT_OF_NODE = [undefined, null, 'GET /', {}, webRequest, { req: webRequest }, { request: webRequest }];
const NOT_OF_THE_WEB = [undefined, null, 'GET /', {}, nodeRequest, { req: nodeRequest }, { raw: nodeRequest }];

const ADAPTERS = { elysia, express, fastify, fetch: web, h3, hono, koa, nest, node };
const ON_NODE = ['express', 'fastify', 'koa', 'nest', 'node'];
const HELPERS = ['routeOf', 'idempotentRequest', 'fieldOfBody', 'servedFromCache', 'passageOf'] as const;

const cases = Object.entries(ADAPTERS).flatMap(([name, adapter]) =>
  HELPERS.filter((helper) => helper in adapter).map((helper) => {
    const call = Reflect.get(adapter, helper) as (...given: unknown[]) => unknown;
    return { name, helper, call, wrong: ON_NODE.includes(name) ? NOT_OF_NODE : NOT_OF_THE_WEB };
  }),
);

describe('a helper of an adapter that gets another argument says what it needs', () => {
  it.each(cases)('$helper of $name', async ({ call, wrong }) => {
    for (const given of wrong) {
      const calling = async () => call(given, { scope: 's' });
      await expect(calling(), String(given)).rejects.toMatchObject({
        code: 'invalid_option',
        message: expect.stringMatching(/^\w+: must be .*: import this helper from your framework's adapter, got /),
      });
    }
  });

  it.each<[string, unknown, unknown]>([
    ['node', node.idempotentRequest, nodeRequest],
    ['fetch', web.idempotentRequest, webRequest],
    ['koa', koa.idempotentRequest, { req: nodeRequest, originalUrl: '/' }],
    ['hono', hono.idempotentRequest, { req: { raw: webRequest } }],
  ])('idempotentRequest of %s without options', async (_, call, request) => {
    const calling = async () => (call as (request: unknown) => unknown)(request);
    await expect(calling()).rejects.toThrow(
      /^options: must be a plain object \(expected scope, account, compares, dispatch, secret, settings, maxBytes or idleMs\), got undefined/,
    );
  });

  it.each<[string, unknown, unknown]>([
    ['node', node.idempotentRequest, nodeRequest],
    ['fetch', web.idempotentRequest, webRequest],
  ])('idempotentRequest of %s with other options', async (_, call, request) => {
    const calling = async (options: unknown) => (call as (...given: unknown[]) => unknown)(request, options);
    await expect(calling({ scope: 's', maxbytes: 9 })).rejects.toThrow(/^options\.maxbytes: unknown option/);
    await expect(calling({ scope: 's', account: Promise.resolve('a') })).rejects.toThrow(
      'account must be a string, got a promise (is await missing?)',
    );
    for (const [, options] of NOT_OPTIONS) {
      await expect(calling(options)).rejects.toThrow(/^options: must be a plain object/);
      await expect(calling({ scope: 's', settings: options })).rejects.toThrow(/^options\.settings: must be a plain/);
    }
  });

  it('fieldOfBody and readAhead with other options', async () => {
    const post = () => new Request('http://localhost/', { method: 'POST', body: new URLSearchParams({ a: '1' }) });
    await expect(web.fieldOfBody(post(), 'a', { maxbytes: 9 } as never)).rejects.toThrow(/^options\.maxbytes: unknown/);
    for (const [, options] of NOT_OPTIONS) {
      await expect(web.fieldOfBody(post(), 'a', options as never)).rejects.toThrow(/^options: must be a plain object/);
      for (const readAhead of [node.readAhead, koa.readAhead])
        expect(() => readAhead(options as never)).toThrow(/^options: must be a plain object/);
    }
  });

  it('right arguments are accepted', () => {
    expect(node.passageOf(nodeResponse)).toBeUndefined();
    expect(web.passageOf(webRequest)).toBeUndefined();
  });
});

it.each<[string, unknown]>([
  ['a request of Node', nodeRequest],
  ['nothing', undefined],
])('fetch: a handler that is called with %s says what it needs', async (_, given) => {
  const gate = createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } }),
    account: () => 'a',
    route: () => 'r',
  });
  const handler = web.withHeadgate(gate, () => new Response());
  await expect(handler(given as never)).rejects.toThrow(
    /^subject: must be a Request of the web, or an object with one/,
  );
});

it('fetch: headgate(gate) that is exported as a handler says what to use', async () => {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } });
  const GET = web.headgate(createGate<Request>({ limiter, account: () => 'a', route: () => 'r' }));
  for (const context of [undefined, { params: Promise.resolve({}) }]) {
    await expect(GET(new Request('http://localhost/'), context as never)).rejects.toMatchObject({
      code: 'invalid_option',
      message: expect.stringMatching(
        /^next: headgate\(gate\) needs \(request, next\); .*use withHeadgate\(gate, handler\)/,
      ),
    });
  }
  expect((await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining).toBe(1);
});

it('fetch: a request whose property `request` cannot be read is a request', async () => {
  const gate = createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } }),
    account: () => 'a',
    route: () => 'r',
  });
  const request = Object.defineProperty(new Request('http://localhost/'), 'request', {
    get: () => {
      throw new Error('not here');
    },
  });
  const response = await web.withHeadgate(gate, () => new Response('ok'))(request);
  expect([response.status, response.headers.get('x-ratelimit-remaining')]).toEqual([200, '0']);
});
