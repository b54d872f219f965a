import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request as open } from 'node:http';
import { text } from 'node:stream/consumers';
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify';
import { field, file, multipart } from 'headgate-testbed/bodies';
import { eventually } from 'headgate-testbed/raw-http';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type FastifyGateOptions,
  fieldOfBody,
  headgate,
  idempotentRequest,
  routeOf,
} from '../../src/adapters/fastify.ts';
import type { GateEvent } from '../../src/gate/index.ts';
import { createFingerprinter, type Fingerprinter } from '../../src/http/fingerprint/fingerprint.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

let app: FastifyInstance;
afterEach(() => app.close());

const idempotency = () => createIdempotency({ store: createMemoryClaimStore() });

/** What a parser that stores nothing returns. */
interface Upload {
  readonly bytes: number;
  readonly fingerprinter: Fingerprinter;
}

interface Server {
  readonly gate?: Partial<GateOptions<FastifyRequest>>;
  readonly plugin?: FastifyGateOptions;
  /** Called before the parser reads, and with each piece. */
  readonly onParse?: (payload: IncomingMessage) => void;
  readonly onChunk?: (chunk: Buffer) => void;
}

/** A server whose parser for forms reads each body as a stream, and makes its fingerprint from the same pieces. */
function serve({ gate: options, plugin, onParse, onChunk }: Server = {}) {
  const counts = { runs: 0, parsed: 0 };
  const events: GateEvent[] = [];
  app = fastify({ forceCloseConnections: true, bodyLimit: 1_000 });
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['50/1m'] } });
  const gate = createGate<FastifyRequest>({
    limiter,
    account: () => 'a',
    route: routeOf,
    idempotency: idempotency(),
    idempotent: ({ headers, body }) => ({
      scope: 'app_1',
      key: String(headers['idempotency-key']),
      fingerprint: (account) => (body as Upload).fingerprinter.fingerprint(account),
    }),
    onEvent: (event) => events.push(event),
    ...options,
  });
  app.addContentTypeParser(
    'multipart/form-data',
    async (request: FastifyRequest, payload: IncomingMessage): Promise<Upload> => {
      onParse?.(payload);
      expect(payload).toBe(request.raw);
      const { method, url: path } = request;
      const fingerprinter = createFingerprinter({ method, path, contentType: request.headers['content-type'] });
      let bytes = 0;
      for await (const chunk of payload) {
        fingerprinter.write(chunk);
        bytes += chunk.length;
        onChunk?.(chunk);
      }
      fingerprinter.end();
      counts.parsed++;
      return { bytes, fingerprinter };
    },
  );
  app.register(headgate(gate, { hook: 'preHandler', readAhead: false, ...plugin }));
  app.post('/files', async ({ body }, reply) =>
    reply.code(201).send({ run: ++counts.runs, bytes: (body as Partial<Upload>).bytes }),
  );
  const failures = () => events.flatMap((event) => (event.type === 'failure' ? [String(event.error)] : []));
  return { counts, limiter, failures };
}

async function connect(key: string | undefined, contentType: string): Promise<ClientRequest> {
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as { port: number };
  const headers = { 'content-type': contentType, ...(key && { 'idempotency-key': key }) };
  return open({ host: '127.0.0.1', port, method: 'POST', path: '/files', headers });
}

async function answerOf(client: ClientRequest) {
  const [response] = (await once(client, 'response')) as [IncomingMessage];
  const { statusCode: status, headers } = response;
  return { status, replayed: headers['idempotency-replayed'], body: JSON.parse(await text(response)) };
}

const form = (content: Uint8Array | string, boundary = 'one') => ({
  type: `multipart/form-data; boundary=${boundary}`,
  body: multipart({ boundary, parts: [field('to', 'ann'), file('file', 'a.txt', content)] }),
});

async function send(key: string | undefined, { type, body }: { type: string; body: Buffer | string }) {
  const client = await connect(key, type);
  client.end(body);
  return answerOf(client);
}

describe('the Fastify plugin with readAhead: false', () => {
  it('I3: the parser gets each piece before the client sends the next one; its fingerprint counts', async () => {
    let arrived = 0;
    const untouched: boolean[] = [];
    const { counts } = serve({
      onParse: (payload) => untouched.push(!payload.readableDidRead && payload.listenerCount('readable') === 0),
      onChunk: (chunk) => (arrived += chunk.length),
    });
    const content = Buffer.alloc(2_000_000, 'x');
    const { type, body } = form(content);
    const client = await connect('k', type);
    // If anything in front of the parser read the body to its end, this would wait forever.
    for (let at = 0; at < body.length; at += 100_000) {
      client.write(body.subarray(at, at + 100_000));
      await eventually(() => arrived === Math.min(at + 100_000, body.length), 'the parser has what was sent');
    }
    client.end();
    const first = await answerOf(client);
    expect(first).toEqual({ status: 201, replayed: undefined, body: { run: 1, bytes: body.length } });

    const retry = await send('k', form(content, 'another'));
    expect(retry).toEqual({ ...first, replayed: 'true' });
    const other = await send('k', form('another file'));
    expect([other.status, other.body.type]).toEqual([409, 'errors/already_used']);
    expect([counts, untouched]).toEqual([{ runs: 1, parsed: 3 }, [true, true, true]]);
  });

  it('I13: a body that its client breaks off claims no key and charges nothing', async () => {
    let arrived = 0;
    const { counts, limiter } = serve({ onChunk: (chunk) => (arrived += chunk.length) });
    const { type, body } = form('half of this');
    const client = await connect('k', type);
    client.on('error', () => {}).write(body.subarray(0, 100));
    await eventually(() => arrived === 100, 'the parser has the first half');
    client.destroy();
    expect(await send('k', form('another file'))).toMatchObject({ status: 201, body: { run: 1 } });
    expect(counts).toEqual({ runs: 1, parsed: 1 });
    expect((await limiter.peek({ account: 'a', route: 'POST /files' }))[0]?.remaining).toBe(49);
  });

  it.each<[string, Partial<GateOptions<FastifyRequest>>]>([
    ['idempotentRequest', { idempotent: (request) => idempotentRequest(request, { scope: 'a' }) }],
    ['fieldOfBody', { account: (request) => fieldOfBody(request, 'to') }],
  ])('if %s reads a body that the parser has, the answer is 500, and the error says why', async (_, gate) => {
    const { counts, failures } = serve({ gate });
    const refused = await send('k', form('a file'));
    expect([refused.status, refused.body.type]).toEqual([500, 'errors/unexpected_error']);
    expect(failures()).toEqual([
      'BodyError: The body was already read: the gate runs in preHandler, behind the content-type parser. Use what the ' +
        'parser returned, or let readAhead be true for requests with an idempotency key.',
    ]);
    expect(counts.runs).toBe(0);
  });

  it('resolvers can read a body that the parser passes on unread; the handler gets it too', async () => {
    serve({ gate: { idempotent: (request) => idempotentRequest(request, { scope: 'a' }) } });
    app.addContentTypeParser('text/plain', (_request, payload, done) => done(null, payload));
    let runs = 0;
    app.post('/passed', async ({ body }) => ({ run: ++runs, got: await text(body as IncomingMessage) }));
    await app.listen({ port: 0, host: '127.0.0.1' });
    const { port } = app.server.address() as { port: number };
    const headers = { 'content-type': 'text/plain', 'idempotency-key': 'k' };
    const ask = () => fetch(`http://127.0.0.1:${port}/passed`, { method: 'POST', headers, body: 'hello' });
    for (const replayed of [null, 'true']) {
      const response = await ask();
      expect(response.headers.get('idempotency-replayed')).toBe(replayed);
      expect(await response.json()).toEqual({ run: 1, got: 'hello' });
    }
  });
});

describe('readAhead as a function', () => {
  it('decides per request with a key; a body that is read ahead has the bound of its route', async () => {
    const asked: unknown[] = [];
    const isForm = ({ headers }: FastifyRequest) => headers['content-type']?.startsWith('multipart/') === true;
    const { counts } = serve({
      plugin: {
        readAhead: (request) => {
          asked.push(request.body);
          return !isForm(request);
        },
      },
      gate: {
        idempotent: (request) =>
          isForm(request)
            ? { scope: 'a', key: 'form', fingerprint: (request.body as Upload).fingerprinter.fingerprint() }
            : idempotentRequest(request, { scope: 'a' }),
      },
    });
    const json = (value: object) => ({ type: 'application/json', body: JSON.stringify(value) });
    expect(await send('form', form('x'.repeat(5_000)))).toMatchObject({ status: 201, body: { run: 1 } });
    expect(await send('json', json({ a: 1, b: 2 }))).toMatchObject({ status: 201, body: { run: 2 } });
    expect(await send('json', json({ b: 2, a: 1 }))).toMatchObject({ replayed: 'true', body: { run: 2 } });
    expect((await send('long', json({ a: 'x'.repeat(5_000) }))).status).toBe(413);
    expect([counts.runs, asked]).toEqual([2, [undefined, undefined, undefined, undefined]]);
  });

  it('if it throws, the request gets a 500 of Fastify, and no handler runs', async () => {
    const { counts } = serve({
      plugin: {
        readAhead: () => {
          throw new Error('boom');
        },
      },
    });
    expect(await send('k', form('x'))).toMatchObject({ status: 500, body: { message: 'boom' } });
    expect(counts).toEqual({ runs: 0, parsed: 0 });
  });
});

describe('options of the Fastify plugin', () => {
  it.each<[object, string]>([
    [{ hook: 'onSend' }, 'hook: must be one of onRequest, preHandler, got "onSend"'],
    [{ hook: 'preHandler', readAhead: 'no' }, 'readAhead: must be true, false or a function of the request, got "no"'],
    [{ hook: 'preHandler', readAhead: null }, 'readAhead: must be true, false or a function of the request, got null'],
    [{ readAhead: false }, "readAhead: must be absent or true, unless hook is 'preHandler', got false"],
    [{ hook: 'onRequest', readAhead: () => false }, "readAhead: must be absent or true, unless hook is 'preHandler'"],
    [{ readahead: false }, 'route options.readahead: unknown option'],
  ])('%o is an OptionError', (options, message) => {
    app = fastify();
    const limiter = createLimiter({ store: createMemoryStore(), limits: { unlimited: true } });
    const gate = createGate<FastifyRequest>({ limiter, account: () => 'a', route: routeOf });
    expect(() => headgate(gate, options)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
    expect(() => headgate(gate, options)).toThrow(message);
    expect(() => headgate(gate, { hook: 'onRequest', readAhead: true })).not.toThrow();
  });

  it('readAhead is not an option of one route: it would have no effect there', async () => {
    app = fastify();
    const gate = createGate<FastifyRequest>({
      limiter: createLimiter({ store: createMemoryStore(), limits: { unlimited: true } }),
      account: () => 'a',
      route: routeOf,
    });
    await app.register(headgate(gate, { hook: 'preHandler' }));
    const config = { headgate: { readAhead: false } as never };
    expect(() => app.post('/x', { config }, async () => 'ok')).toThrow(/readAhead: unknown option/);
  });
});
