import { Readable } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import { fieldOfBody, headgate, idempotentRequest, routeOf } from '../../src/adapters/fastify.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

let app: FastifyInstance;
afterEach(() => app.close());

/** Far below the default of 30 s, so that a request that hangs ends in a 408. */
const READING = { idleMs: 500 };

function createApp(options: Partial<GateOptions<FastifyRequest>> = {}, hook?: 'onRequest' | 'preHandler') {
  app = fastify();
  const gate = createGate<FastifyRequest>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } }),
    account: () => 'a',
    route: routeOf,
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    idempotent: (request) => idempotentRequest(request, { scope: 'app_1', ...READING }),
    ...options,
  });
  app.register(headgate(gate, { hook }));
  let runs = 0;
  app.register(async (inner) => {
    inner.post('/x', async ({ body }) => ({ body: body ?? null, run: ++runs }));
  });
}

const inject = async (payload?: object | string | Readable, headers: Record<string, string> = {}) => {
  const answer = await app.inject({
    method: 'POST',
    url: '/x',
    headers: { 'idempotency-key': 'k', ...headers },
    ...(payload !== undefined && { payload }),
  });
  return [answer.statusCode, answer.headers['idempotency-replayed'], answer.body];
};

describe("I13: a body under Fastify's inject() is read for its fingerprint, and put back", () => {
  it.each(['onRequest', 'preHandler'] as const)('in %s', async (hook) => {
    createApp({}, hook);
    const first = '{"body":{"to":"ann"},"run":1}';
    expect(await inject({ to: 'ann' })).toEqual([200, undefined, first]);
    expect(await inject({ to: 'ann' })).toEqual([200, 'true', first]);
    expect((await inject({ to: 'bob' }))[0]).toBe(409);
  });

  it('as a stream', async () => {
    createApp();
    const stream = Readable.from([Buffer.from('{"to":'), Buffer.from('"ann"}')]);
    const type = { 'content-type': 'application/json' };
    expect(await inject(stream, type)).toEqual([200, undefined, '{"body":{"to":"ann"},"run":1}']);
  });

  it('if it is empty', async () => {
    createApp();
    expect(await inject()).toEqual([200, undefined, '{"body":null,"run":1}']);
    expect(await inject()).toEqual([200, 'true', '{"body":null,"run":1}']);
  });

  it('for a field that names the account', async () => {
    createApp({ account: (request) => fieldOfBody(request, 'account_id', READING) });
    expect(await inject({ account_id: 'b' })).toEqual([200, undefined, '{"body":{"account_id":"b"},"run":1}']);
  });

  it('a body that breaks off is not taken for a whole one', async () => {
    createApp();
    const broken = Readable.from(
      (async function* () {
        yield Buffer.from('{"to":1}');
        throw new Error('broken off');
      })(),
    );
    await expect(inject(broken, { 'content-type': 'application/json' })).rejects.toThrow('broken off');
    expect(await inject({ to: 'ann' })).toEqual([200, undefined, '{"body":{"to":"ann"},"run":1}']);
  });
});
