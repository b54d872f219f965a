import { once } from 'node:events';
import { connect as tcp } from 'node:net';
import { Readable } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { eventually, pause } from 'headgate-testbed/raw-http';
import { afterEach, describe, expect, it } from 'vitest';
import {
  fieldOfBody,
  headgate,
  idempotentRequest,
  passageOf,
  routeOf,
  servedFromCache,
} from '../../src/adapters/fastify.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

let app: FastifyInstance;
afterEach(() => app.close());

function parts(options: Partial<GateOptions<FastifyRequest>> = {}) {
  app = fastify({ forceCloseConnections: true });
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['5/1m'] } });
  const gate = createGate<FastifyRequest>({ limiter, account: () => 'a', route: routeOf, ...options });
  return { gate, limiter };
}

const keyed = (): Partial<GateOptions<FastifyRequest>> => ({
  idempotency: createIdempotency({ store: createMemoryClaimStore() }),
  idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
});

/** Over a real socket, because Fastify's `inject` has no connections. */
async function ask(path: string, init: RequestInit = {}) {
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as { port: number };
  const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
  return {
    status: response.status,
    left: response.headers.get('x-ratelimit-remaining'),
    replayed: response.headers.get('idempotency-replayed'),
    own: response.headers.get('x-own'),
    type: response.headers.get('content-type'),
    body: await response.text(),
  };
}

const post = (body: object, key?: string): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) },
  body: JSON.stringify(body),
});

describe('the Fastify plugin', () => {
  it('guards only the context that it is registered in, and its children', async () => {
    const { gate } = parts();
    app.get('/outside', async () => 'ok');
    app.register(async (inner) => {
      inner.register(headgate(gate));
      inner.get('/early', async () => 'ok');
      inner.register(async (child) => void child.get('/child', async () => 'ok'), { prefix: '/deep' });
    });
    expect((await ask('/outside')).left).toBeNull();
    expect((await ask('/early')).left).toBe('4');
    expect((await ask('/deep/child')).left).toBe('4');
  });

  it('takes the options of a route from its config; false means no gate', async () => {
    const { gate, limiter } = parts();
    await app.register(headgate(gate, { provider: () => 'p' }));
    app.get('/cost/:id', { config: { headgate: { cost: 3 } } }, async () => 'ok');
    app.get('/none', { config: { headgate: false } }, async () => 'ok');
    expect((await ask('/cost/1')).left).toBe('2');
    expect((await ask('/none')).left).toBeNull();
    expect((await limiter.peek({ account: 'a', route: 'GET /cost/:id' }))[0]?.remaining).toBe(2);
  });

  it('limits a route by the limits in its config, at their cost', async () => {
    const { gate } = parts();
    await app.register(headgate(gate));
    app.get('/chats/:id', { config: { headgate: { limits: ['4/1m'], cost: 2 } } }, async () => 'ok');
    app.get('/other', async () => 'ok');
    const statuses = [];
    for (const path of ['/chats/1', '/chats/2', '/chats/3', '/other']) statuses.push((await ask(path)).status);
    expect(statuses).toEqual([200, 200, 429, 200]);
  });

  it('a mistake in the options of a route throws when the route is declared', async () => {
    const { gate } = parts();
    await app.register(headgate(gate));
    expect(() => app.get('/x', { config: { headgate: { cots: 3 } as never } }, async () => 'ok')).toThrow(/cots/);
    expect(() => app.get('/y', { config: { headgate: { limits: ['4'] } } }, async () => 'ok')).toThrow(
      /^route options\.limits\[0\]: a window is/,
    );
  });

  it('register(headgate, gate) says what to write', async () => {
    const { gate } = parts();
    app.register(headgate as never, gate as never);
    await expect(app.ready()).rejects.toThrow(
      'gate: must be what createGate() returns: write app.register(headgate(gate)), got an instance of Fastify',
    );
  });

  it('options of the gate that are passed to register() would do nothing, so they are refused', async () => {
    const { gate } = parts();
    app.register(headgate(gate), { prefix: '/x', cost: 3 } as never);
    await expect(app.ready()).rejects.toThrow(/^cost: must be in headgate\(gate, \{ … \}\), got 3/);
  });

  it('does not limit a URL without a route; HEAD counts as its GET', async () => {
    const { gate } = parts();
    await app.register(headgate(gate));
    app.get('/x', async () => 'ok');
    expect(await ask('/none')).toMatchObject({ status: 404, left: null });
    expect((await ask('/x', { method: 'HEAD' })).left).toBe('4');
    expect((await ask('/x')).left).toBe('3');
  });

  it('its answers run through the hooks of other plugins and carry their fields', async () => {
    const { gate } = parts();
    await app.register(headgate(gate.with({ cost: 6 })));
    app.addHook('onSend', async (_, reply) => void reply.header('x-own', '1'));
    app.get('/x', async () => 'ok');
    const rejected = await ask('/x');
    expect([rejected.status, rejected.own, JSON.parse(rejected.body).req_id]).toEqual([422, '1', 'req-1']);
  });

  it('rejects before the body is parsed', async () => {
    const { gate } = parts();
    await app.register(headgate(gate, { cost: 6 }));
    app.post('/x', async () => 'ok');
    const headers = { 'content-type': 'application/json' };
    expect((await ask('/x', { method: 'POST', headers, body: '{ no json' })).status).toBe(422);
  });

  it('hook: preHandler: resolvers read the parsed body, and fingerprints are of the body that was sent', async () => {
    let runs = 0;
    const { gate } = parts({ ...keyed(), account: ({ body }) => (body as { account: string }).account });
    await app.register(headgate(gate, { hook: 'preHandler' }));
    app.post('/x', async ({ body }) => ({ ...(body as object), run: ++runs }));
    expect(await ask('/x', post({ account: 'b' }))).toMatchObject({ status: 200, left: '4' });
    const [first, second] = [
      await ask('/x', post({ account: 'b' }, 'k')),
      await ask('/x', post({ account: 'b' }, 'k')),
    ];
    expect([first.body, second.body, second.replayed]).toEqual(['{"account":"b","run":2}', first.body, 'true']);
    expect((await ask('/x', post({ account: 'c' }, 'k'))).status).toBe(409);
    expect(await ask('/x', { ...post({}, 'k'), body: '{ no json' })).toMatchObject({ status: 400, left: null });
  });

  it('hook: preHandler: the gate answers 413 if a body is over the limit of its route', async () => {
    const { gate } = parts({ ...keyed(), problemMediaType: 'application/problem+json' });
    await app.register(headgate(gate, { hook: 'preHandler' }));
    app.post('/x', { bodyLimit: 10 }, async () => 'ok');
    const refused = await ask('/x', post({ account: 'much too long' }, 'k'));
    expect([refused.status, refused.type]).toEqual([413, 'application/problem+json']);
    expect(JSON.parse(refused.body).type).toBe('errors/payload_too_large');
  });

  it('hook: preHandler: if a body with an unused key is too long, its handler does not run and nothing is charged', async () => {
    const { gate, limiter } = parts({
      ...keyed(),
      idempotent: (request) => (request.method === 'PUT' ? idempotentRequest(request, { scope: 'a' }) : undefined),
    });
    app.register(headgate(gate, { hook: 'preHandler' }));
    const options = { bodyLimit: 1_000 };
    app.post('/unread', options, async (request) => request.body);
    app.post('/off', { ...options, config: { headgate: false } }, async (request) => request.body);
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as { port: number };
    for (const path of ['/unread', '/off']) {
      const socket = tcp(port, '127.0.0.1');
      const answered = once(socket, 'data');
      const chunk = (text: string) => socket.write(`${text.length.toString(16)}\r\n${text}\r\n`);
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-type: application/json\r\n`);
      socket.write('transfer-encoding: chunked\r\n\r\n');
      chunk(`{"a":"${' '.repeat(1_200)}`);
      await pause(50);
      chunk('{"only":"the tail"}');
      socket.write('0\r\n\r\n');
      expect(String(await answered)).toMatch(/^HTTP\/1.1 413 /);
      socket.destroy();
    }
    expect((await limiter.peek({ account: 'a', route: 'POST /unread' }))[0]?.remaining).toBe(5);
  });

  it('I5: hook: preHandler: a duplicate stops waiting when its client goes', async () => {
    const { gate } = parts();
    const idempotency = createIdempotency({ store: createMemoryClaimStore() });
    const { idempotent } = keyed();
    app.register(headgate(gate, { hook: 'preHandler', idempotency, idempotent }));
    let finish = (_: string): void => {};
    app.post('/', () => new Promise((resolve) => (finish = resolve)));
    const original = ask('/', post({ a: 1 }, 'k'));
    await eventually(() => idempotency.held === 1, 'the original runs');
    const gone = new AbortController();
    const duplicate = ask('/', { ...post({ a: 1 }, 'k'), signal: gone.signal }).catch(() => 'gone');
    await eventually(() => idempotency.waiting === 1, 'the duplicate waits');
    gone.abort();
    await eventually(() => idempotency.waiting === 0, 'the duplicate stops waiting');
    finish('sent');
    expect([(await original).body, await duplicate]).toEqual(['sent', 'gone']);
  });

  it('I4: if an answer has no content type, its replay has none either', async () => {
    const { gate } = parts(keyed());
    await app.register(headgate(gate));
    app.post('/streamed', async (_, reply) => reply.send(Readable.from(['a', 'b'])));
    app.post('/raw', (_, reply) => void reply.hijack().raw.end('ab'));
    for (const path of ['/streamed', '/raw']) {
      const [first, second] = [await ask(path, post({}, path)), await ask(path, post({}, path))];
      expect([second.replayed, second.body]).toEqual(['true', 'ab']);
      expect([first.type, second.type]).toEqual([null, null]);
    }
  });

  it('S12: the charge of an answer from a cache is refunded; the account is read from the body', async () => {
    const { gate, limiter } = parts({ account: (request) => fieldOfBody(request, 'account') });
    await app.register(headgate(gate));
    app.post('/cached', async (_, reply) => {
      expect(passageOf(reply)?.decision?.accepted).toBe(true);
      servedFromCache(reply);
      return 'ok';
    });
    expect((await ask('/cached', post({ account: 'b' }))).status).toBe(200);
    await expect.poll(async () => (await limiter.peek({ account: 'b', route: 'POST /cached' }))[0]?.remaining).toBe(5);
  });

  it('I6: the answer of the error handler is the outcome', async () => {
    let runs = 0;
    const { gate } = parts(keyed());
    await app.register(headgate(gate));
    app.setErrorHandler((_, __, reply) => reply.code(418).send({ run: ++runs }));
    app.post('/x', async () => {
      throw new Error('boom');
    });
    const [first, second] = [await ask('/x', post({}, 'k')), await ask('/x', post({}, 'k'))];
    expect([first.status, second.status, second.body, runs]).toEqual([418, 418, '{"run":1}', 1]);
  });
});
