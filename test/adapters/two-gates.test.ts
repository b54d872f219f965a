import type { IncomingMessage } from 'node:http';
import connect from 'connect';
import fastify, { type FastifyRequest } from 'fastify';
import { H3, type H3Event } from 'h3';
import { listen } from 'headgate-testbed/listen';
import { type Context, Hono } from 'hono';
import Koa from 'koa';
import { expect, it } from 'vitest';
import * as onFastify from '../../src/adapters/fastify.ts';
import * as onFetch from '../../src/adapters/fetch.ts';
import * as onH3 from '../../src/adapters/h3.ts';
import * as onHono from '../../src/adapters/hono.ts';
import * as onKoa from '../../src/adapters/koa.ts';
import * as onNode from '../../src/adapters/node.ts';
import { createGate, createIdempotency, createLimiter, type Gate, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

/** One gate, to be mounted by an app and by one of its routes. */
function gateOf<Request>(
  idempotentRequest: (request: Request, options: { scope: string }) => unknown,
): Gate<Request> & { left(): Promise<number | undefined> } {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['9/1m'] } });
  const gate = createGate<Request>({
    limiter,
    account: () => 'a',
    route: () => 'r',
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    idempotent: ((request: Request) =>
      idempotentRequest(request, { scope: 's' })) as GateOptions<Request>['idempotent'],
  });
  const left = async () => (await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining;
  return Object.assign(gate, { left });
}

type Ask = (init: RequestInit) => Promise<Response> | Response;
type Twice = () => Promise<{ ask: Ask; left(): Promise<number | undefined>; close?(): unknown }>;

const serveOf = async (listener: Parameters<typeof listen>[0]) => {
  const { url, close } = await listen(listener);
  return { ask: (init: RequestInit) => fetch(url, init), close };
};

const APPS: Record<string, Twice> = {
  connect: async () => {
    const gate = gateOf<IncomingMessage>(onNode.idempotentRequest);
    const app = connect().use(onNode.headgate(gate)).use(onNode.headgate(gate));
    app.use((_: unknown, response: { end(text: string): void }) => response.end('sent'));
    return { ...(await serveOf(app)), left: gate.left };
  },
  koa: async () => {
    const gate = gateOf<Koa.Context>(onKoa.idempotentRequest);
    const app = new Koa().use(onKoa.headgate(gate)).use(onKoa.headgate(gate));
    app.use((context) => {
      context.body = 'sent';
    });
    return { ...(await serveOf(app.callback())), left: gate.left };
  },
  fastify: async () => {
    const gate = gateOf<FastifyRequest>(onFastify.idempotentRequest);
    const app = fastify({ forceCloseConnections: true });
    app.register(onFastify.headgate(gate)).register(onFastify.headgate(gate));
    app.post('/', async () => 'sent');
    const url = await app.listen({ port: 0, host: '127.0.0.1' });
    return { ask: (init) => fetch(url, init), close: () => app.close(), left: gate.left };
  },
  hono: async () => {
    const gate = gateOf<Context>(onHono.idempotentRequest);
    const app = new Hono().use(onHono.headgate(gate)).post('/', onHono.headgate(gate), (c) => c.text('sent'));
    return { ask: (init) => app.request('/', init), left: gate.left };
  },
  h3: async () => {
    const gate = gateOf<H3Event>(onH3.idempotentRequest);
    const app = new H3().use(onH3.headgate(gate));
    app.post('/', () => 'sent', { middleware: [onH3.headgate(gate)] });
    return { ask: (init) => app.request('/', init), left: gate.left };
  },
  fetch: async () => {
    const gate = gateOf<Request>(onFetch.idempotentRequest);
    const handler = onFetch.withHeadgate(
      gate,
      onFetch.withHeadgate(gate, () => new Response('sent')),
    );
    return { ask: (init) => handler(new Request('http://localhost/', init)), left: gate.left };
  },
};

it.each(Object.keys(APPS))(
  'I5: %s: behind a gate that stores the outcome, a second gate only limits, because it would wait for itself',
  async (name) => {
    const { ask, left, close } = await (APPS[name] as Twice)();
    try {
      for (const replayed of [null, 'true']) {
        const answer = await ask({ method: 'POST', headers: { 'idempotency-key': 'k' }, body: 'x' });
        expect([answer.status, await answer.text(), answer.headers.get('idempotency-replayed')]).toEqual([
          200,
          'sent',
          replayed,
        ]);
      }
      expect(await left()).toBe(7);
    } finally {
      await close?.();
    }
  },
);

it('I5: behind two gates, of which the first one stores the outcome, a third gate claims no key either', async () => {
  const gate = gateOf<IncomingMessage>(onNode.idempotentRequest);
  const limits = onNode.headgate(gate);
  const app = connect().use(limits).use(limits).use(limits);
  app.use((_: unknown, response: { end(text: string): void }) => response.end('sent'));
  const { ask, close } = await serveOf(app);
  try {
    for (const replayed of [null, 'true']) {
      const answer = await ask({ method: 'POST', headers: { 'idempotency-key': 'k' }, body: 'x' });
      expect([answer.status, answer.headers.get('idempotency-replayed')]).toEqual([200, replayed]);
    }
    expect(await gate.left()).toBe(6);
  } finally {
    await close();
  }
});
