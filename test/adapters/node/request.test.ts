import type { IncomingMessage } from 'node:http';
import { connect as tcp } from 'node:net';
import connect from 'connect';
import { listen } from 'headgate-testbed/listen';
import { eventually } from 'headgate-testbed/raw-http';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { idempotentRequest } from '../../../src/adapters/node.ts';
import { fingerprintValue } from '../../support/fingerprint-value.ts';
import { type KeyedServerOptions, keyedServers, type serveKeyed } from '../../support/keyed-server.ts';

const { serve, open } = keyedServers();

const within = (options: Partial<Parameters<typeof idempotentRequest>[1]>): KeyedServerOptions => ({
  gate: { idempotent: (request) => idempotentRequest(request, { scope: 'app_1', ...options }) },
});
const ok: Parameters<typeof serveKeyed>[0] = (_, response) => response.end('ok');
const errorOf = (reply: { status: number; text: string }) => [reply.status, JSON.parse(reply.text).type];

it.each([{ maxBytes: Number.NaN }, { maxBytes: -1 }, { maxBytes: '9' as never }, { idleMs: 0 }, { idleMs: 2 ** 31 }])(
  '%j is not a limit: 500, and a failure event of the resolver',
  async (options) => {
    const server = await serve(ok, within(options));
    expect(errorOf(await server.post())).toEqual([500, 'errors/unexpected_error']);
    expect(server.events.at(-1)).toMatchObject({
      type: 'failure',
      stage: 'idempotent',
      error: { code: 'invalid_option' },
    });
    expect(server.runs).toBe(0);
  },
);

describe('I13: rejected before anything is claimed or charged:', () => {
  afterEach(() => {
    expect(open).not.toHaveLength(0);
    for (const server of open) {
      expect(server.line.sent).toEqual([]);
      expect(server.runs).toBe(0);
    }
  });

  it.each([
    ['by its content-length', 'content-length: 101\r\n\r\n', 'x'.repeat(101)],
    ['in chunks', 'transfer-encoding: chunked\r\n\r\n', `65\r\n${'x'.repeat(101)}\r\n0\r\n\r\n`],
  ])('413: a body over the limit, %s; the connection can be used again', async (_how, framing, body) => {
    const server = await serve(ok, within({ maxBytes: 100 }));
    const socket = tcp(server.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    for (const times of [1, 2]) {
      socket.write(`POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\n${framing}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
      socket.write(body);
      await eventually(() => text.split('errors/payload_too_large').length === times + 1, `answer ${times}`);
    }
    expect(text.split('HTTP/1.1 413')).toHaveLength(3);
    socket.destroy();
  });

  it.each<[string, string | string[]]>([
    ['empty', ''],
    ['too long', 'k'.repeat(256)],
    ['given twice', ['a', 'b']],
    ['given twice alike', ['a', 'a']],
    ['not ASCII', 'ké'],
  ])('I1: 422 for a key that is %s', async (_how, key) => {
    const server = await serve(ok);
    expect(errorOf(await server.post('/', { 'idempotency-key': key }))).toEqual([422, 'errors/unprocessable_entity']);
    expect(server.events).toEqual([]);
  });

  it('422 for a second Content-Type, which Node would ignore', async () => {
    const server = await serve(ok);
    const types = ['application/json', 'text/plain'];
    expect((await server.post('/', { 'content-type': types })).status).toBe(422);
  });

  it('422 for a multipart body that parsers read in different ways', async () => {
    const server = await serve(ok);
    const headers = { 'content-type': 'multipart/form-data; boundary=b' };
    expect(errorOf(await server.post('/', headers, '--b\r\nno part'))).toEqual([422, 'errors/unprocessable_entity']);
  });

  it('408 for a body that stalls', async () => {
    const server = await serve(ok, within({ idleMs: 50 }));
    const socket = tcp(server.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.write('POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 9\r\n\r\nhalf');
    await eventually(() => text.includes('errors/request_timeout'), 'the answer');
    expect(text).toMatch(/^HTTP\/1.1 408/);
    socket.destroy();
  });

  it('a request whose client goes in the middle of the body', async () => {
    let fault: unknown;
    const server = await serve(ok, {
      gate: {
        idempotent: async (request) => {
          try {
            return await idempotentRequest(request, { scope: 'app_1' });
          } catch (error) {
            fault = error;
            throw error;
          }
        },
      },
    });
    const socket = tcp(server.port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 9\r\n\r\nhalf');
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.destroy();
    await eventually(() => fault, 'the reading ends');
    expect(fault).toMatchObject({ status: 400, reason: 'aborted' });
  });

  it('500, and a failure event, if the body was already read', async () => {
    const server = await serve(ok, {
      gate: {
        idempotent: async (request) => {
          for await (const _ of request);
          return idempotentRequest(request, { scope: 'app_1' });
        },
      },
    });
    expect(errorOf(await server.post())).toEqual([500, 'errors/unexpected_error']);
    expect(server.events).toMatchObject([{ type: 'failure', stage: 'idempotent', error: { reason: 'already_read' } }]);
  });
});

describe('I2: the same request', () => {
  it.each<[string, string, Record<string, string>, string, RegExp]>([
    ['another path', '/b', {}, '{"a":1}', /the path differs/],
    ['another query', '/?x=2', {}, '{"a":1}', /the query differs/],
    ['another body', '/', {}, '{"a":2}', /a differs/],
    ['another type', '/', { 'content-type': 'text/plain' }, '{"a":1}', /content type/],
  ])('has the same content: %s under the same key is rejected with 409', async (_what, path, headers, body, detail) => {
    const server = await serve(ok);
    await server.post();
    const reply = await server.post(path, headers, body);
    expect(errorOf(reply)).toEqual([409, 'errors/already_used']);
    expect(JSON.parse(reply.text).detail).toMatch(detail);
  });

  it('has the same account, from the gate and from the resolver; white space in JSON does not matter', async () => {
    const server = await serve(ok, {
      gate: {
        idempotent: (request) =>
          idempotentRequest(request, { scope: 'app_1', account: String(request.headers['x-team']), secret: 's' }),
      },
    });
    await server.post();
    expect(JSON.parse((await server.post('/', { 'x-team': 'b' })).text).detail).toMatch(/the account differs/);
    expect((await server.post('/', {}, '{ "a": 1 }')).headers['idempotency-replayed']).toBe('true');
    expect(JSON.parse((await server.post('/', { 'x-account': 'b' })).text).detail).toMatch(/the account differs/);

    const plain = await serve(ok);
    await plain.post();
    expect(JSON.parse((await plain.post('/', { 'x-account': 'b' })).text).detail).toMatch(/the account differs/);
  });

  it('has the same application: another application can use the same key', async () => {
    const server = await serve(ok);
    await server.post();
    const other = await server.post('/', { 'x-app': 'app_2' }, '{"a":2}');
    expect([other.status, other.headers['idempotency-replayed'], server.runs]).toEqual([200, undefined, 2]);
  });

  it('has the same path, including the mount path', async () => {
    const values: string[] = [];
    const app = connect();
    const note = async (request: IncomingMessage, response: { end(): void }) => {
      values.push(await fingerprintValue(await idempotentRequest(request, { scope: 's' })));
      response.end();
    };
    app.use('/a', note as never);
    app.use('/b', note as never);
    const listening = await listen(app);
    onTestFinished(() => listening.close());
    for (const path of ['/a/x', '/b/x', '/a/x']) {
      await fetch(listening.url + path, { method: 'POST', body: 'x', headers: { 'idempotency-key': 'k' } });
    }
    expect(values[0]).toBe(values[2]);
    expect(values[0]).not.toBe(values[1]);
  });

  it('settings of idempotentRequest override those of createIdempotency', async () => {
    const server = await serve(
      (_, response) => setTimeout(() => response.end('late'), 100),
      within({ settings: { waitMs: 0 } }),
    );
    const first = server.post();
    await eventually(() => server.runs === 1, 'the handler runs');
    const second = await server.post();
    expect(errorOf(second)).toEqual([409, 'errors/conflict']);
    expect(Number(second.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect((await first).text).toBe('late');
  });

  it('I5: a duplicate stops waiting when its client goes', async () => {
    const server = await serve((request, response) => {
      request.resume();
      setTimeout(() => response.end('late'), 300);
    });
    const first = server.post();
    await eventually(() => server.runs === 1, 'the handler runs');
    const socket = tcp(server.port, '127.0.0.1');
    socket.write(
      'POST / HTTP/1.1\r\nhost: x\r\nx-account: a\r\nidempotency-key: k\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}',
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    await eventually(
      () => server.events.some((event) => event.type === 'idempotency' && event.outcome === 'aborted'),
      'the duplicate stops waiting',
    );
    await first;
  });
});
