import type { IncomingMessage } from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { connect as tcp } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { eventually, oneConnection, pause, send } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { keyedServers, type serveKeyed } from '../../support/keyed-server.ts';

const { serve } = keyedServers();

/** Ways to read a plain stream. */
const READERS: Record<string, (request: IncomingMessage) => Promise<Buffer>> = {
  'data and end': (request) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk) => chunks.push(chunk)).on('end', () => resolve(Buffer.concat(chunks)));
    }),
  'an iterator, later': async (request) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    return Buffer.concat(chunks);
  },
  'readable and read': (request) =>
    new Promise((resolve) => {
      const chunks: Buffer[] = [];
      request.on('readable', () => {
        for (let chunk = request.read(); chunk !== null; chunk = request.read()) chunks.push(chunk);
      });
      request.on('end', () => resolve(Buffer.concat(chunks)));
    }),
  'a pipe': (request) => buffer(request.pipe(new PassThrough())),
  'an encoding': (request) =>
    new Promise((resolve) => {
      let text = '';
      request.setEncoding('latin1').on('data', (chunk) => {
        text += chunk;
      });
      request.on('end', () => resolve(Buffer.from(text, 'latin1')));
    }),
};

const echo =
  (read: (request: IncomingMessage) => Promise<Buffer>): Parameters<typeof serveKeyed>[0] =>
  async (request, response) =>
    response.end(await read(request));

describe.each([
  ['HTTP/1', false],
  ['HTTP/2', true],
])('I13: over %s the handler finds the body untouched,', (_, http2) => {
  it.each(Object.entries(READERS))('read by %s', async (_way, read) => {
    const server = await serve(echo(read), { http2 });
    const bodies = [
      Buffer.alloc(0),
      Buffer.from('{}'),
      Buffer.from([0, 255, 10]),
      Buffer.alloc(700_000, 'é', 'latin1'),
    ];
    for (const [i, body] of bodies.entries()) {
      const headers = { 'idempotency-key': `k${i}`, 'content-type': 'application/octet-stream' };
      expect((await server.post('/', headers, body)).body.equals(body)).toBe(true);
    }
  });

  it('even if it does not read the body, the connection can be used again', async () => {
    const server = await serve((_request, response) => response.end('ok'), { http2 });
    const agent = oneConnection();
    for (let i = 0; i < 5; i++) {
      const ask = { method: 'POST', path: '/', headers: { 'idempotency-key': `k${i % 3}` }, body: 'x'.repeat(200_000) };
      // Over HTTP/2 all requests share one connection.
      const reply = await (http2 ? server.post(ask.path, ask.headers, ask.body) : send(server.port, { ...ask, agent }));
      expect([reply.status, reply.text]).toEqual([200, 'ok']);
    }
    agent.destroy();
  });
});

describe('I13: over HTTP/1 the handler finds the body untouched,', () => {
  it.each(Object.entries(READERS))('sent in pieces, over time, read by %s', async (_way, read) => {
    const server = await serve(echo(read));
    const socket = tcp(server.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.write('POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ntransfer-encoding: chunked\r\n\r\n');
    for (const piece of ['a', 'bc', 'def']) {
      await pause(10);
      socket.write(`${piece.length}\r\n${piece}\r\n`);
    }
    socket.write('0\r\n\r\nGET /next HTTP/1.1\r\nhost: x\r\n\r\n');
    await eventually(() => text.split('HTTP/1.1 200').length === 3, 'both answers');
    expect(text).toMatch(/abcdef/);
    socket.destroy();
  });

  it('empty and chunked, with an end that comes late', async () => {
    const read = READERS['data and end'] as (request: IncomingMessage) => Promise<Buffer>;
    const server = await serve(async (request, response) => response.end(`${(await read(request)).length} bytes`));
    for (const later of [true, false]) {
      const socket = tcp(server.port, '127.0.0.1');
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
      });
      const head = `POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: ${later}\r\ntransfer-encoding: chunked\r\n\r\n`;
      socket.write(later ? head : `${head}0\r\n\r\n`);
      await pause(20);
      if (later) socket.write('0\r\n\r\n');
      await eventually(() => text.includes('0 bytes'), 'the answer');
      socket.destroy();
    }
  });

  it('and not read at all if the request has no key', async () => {
    const server = await serve(async (request, response) => {
      response.end(String(request.readableDidRead));
    });
    const reply = await send(server.port, { method: 'POST', path: '/', body: 'x' });
    expect([reply.text, reply.headers['idempotency-replayed']]).toEqual(['false', undefined]);
  });
});

describe.each(Object.entries(READERS))(
  'I13: over HTTP/2 the handler finds the body untouched, read by %s:',
  (_way, read) => {
    it.each<[string, string[] | undefined, isLate?: boolean]>([
      ['no body', undefined],
      ['an empty body', []],
      ['an empty body whose end comes late', [], true],
      ['a body in pieces, over time', ['a', 'bc', 'def']],
      ['a body in pieces, over time, whose end comes late', ['a', 'bc', 'def'], true],
    ])('%s', async (_what, pieces, isLate = false) => {
      const server = await serve(echo(read), { http2: true });
      const client = connect(`http://127.0.0.1:${server.port}`);
      const head = { ':method': 'POST', 'x-account': 'a', 'idempotency-key': 'k' };
      const stream = client.request(head, { endStream: pieces === undefined });
      const answer = buffer(stream);
      for (const piece of pieces ?? []) {
        stream.write(piece);
        await pause(10);
      }
      if (isLate) await pause(20);
      stream.end();
      expect(String(await answer)).toBe((pieces ?? []).join(''));
      client.close();
    });
  },
);

describe('I13: over HTTP/2 a body that breaks off does not use its key, if', () => {
  it.each<[string, (stream: ClientHttp2Stream, client: ClientHttp2Session) => void]>([
    ['its client cancels the stream', (stream) => stream.destroy(new Error('gone'))],
    ['its client closes the stream without an error', (stream) => stream.destroy()],
    ['its connection breaks', (_, client) => client.destroy()],
  ])('%s', async (_what, breakOff) => {
    const server = await serve((_request, response) => response.end('ok'), { http2: true });
    for (const pieces of [[], ['{"a":']]) {
      const client = connect(`http://127.0.0.1:${server.port}`);
      const stream = client.request({ ':method': 'POST', 'x-account': 'a', 'idempotency-key': 'k' });
      stream.on('error', () => {});
      for (const piece of pieces) stream.write(piece);
      await pause(20);
      breakOff(stream, client);
      await pause(20);
      client.destroy();
    }
    expect([server.runs, server.events]).toEqual([0, []]);
    expect((await server.post()).text).toBe('ok');
  });
});
