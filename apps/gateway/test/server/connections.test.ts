/**
 * Malformed HTTP gets 400 with the whole error object, after the answers to earlier requests; then the connection
 * closes.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { eventually, openRaw, type RawReply, rawRequest } from 'headgate-testbed/raw-http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sendReply } from '../../src/exchange/answers.ts';
import { createExchange } from '../../src/exchange/exchange.ts';
import { type Connections, watchConnections } from '../../src/server/connections.ts';
import { expectProblem } from '../support/gateway.ts';

let told: { id: string; status: number; reason: string }[];
let held: ServerResponse[];
let connections: Connections;
let ids = 0;
const server = createServer({
  connectionsCheckingInterval: 20,
  requestTimeout: 150,
  headersTimeout: 150,
  requireHostHeader: false,
});
const portOf = () => (server.address() as AddressInfo).port;

beforeAll(async () => {
  const newId = () => `id-${++ids}`;
  connections = watchConnections(server, {
    maxConnections: 100,
    newId,
    onMalformed: (id, status, reason) => told.push({ id, status, reason }),
  });
  server.on('request', (request, response) => {
    const exchange = createExchange(newId(), request, response, false);
    connections.add(exchange);
    request.on('error', () => {}).resume();
    if (request.url === '/held') held.push(response);
    if (request.url === '/answered') sendReply(exchange, { status: 404, headers: {}, body: '' });
    if (request.url === '/') response.end('fine');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});
beforeEach(() => {
  told = [];
  held = [];
});

describe('malformed HTTP', () => {
  it.each([
    ['no HTTP at all', 'GARBAGE\r\n\r\n', 400, 'errors/malformed_request', 'HPE_INVALID_METHOD'],
    [
      'a head past 16 KiB',
      `GET / HTTP/1.1\r\nx: ${'x'.repeat(20_000)}`,
      431,
      'errors/headers_too_large',
      'HPE_HEADER_OVERFLOW',
    ],
    ['a head that does not end', 'GET / HTTP/1.1\r\n', 408, 'errors/request_timeout', 'ERR_HTTP_REQUEST_TIMEOUT'],
    ['a tunnel', 'CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n', 400, 'errors/malformed_request', 'CONNECT'],
  ])('%s: the whole error object, then the connection closes', async (_title, bytes, status, type, reason) => {
    const connection = await openRaw(portOf());
    connection.write(bytes);
    await connection.closed;
    expect(connection.replies()).toHaveLength(1);
    const [reply] = connection.replies() as [RawReply];
    const { req_id } = expectProblem(reply, status, type);
    expect(reply.headers.connection).toBe('close');
    expect(connection.received()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [A-Z][a-zA-Z ]+\r\n`));
    expect(told).toEqual([{ id: req_id, status, reason }]);
    expect(connections.running).toBe(0);
  });

  it('from a client that can no longer be answered is ignored', () => {
    for (const error of [new Error('reset'), Object.assign(new Error('reset'), { code: 'ECONNRESET' })]) {
      const socket = new PassThrough();
      socket.end();
      server.emit('clientError', error, socket);
      expect(socket.destroyed).toBe(true);
    }
    const tunnel = new PassThrough();
    tunnel.end();
    server.emit('connect', {}, tunnel, Buffer.alloc(0));
    expect(tunnel.destroyed).toBe(true);
    expect(told).toEqual([]);
  });

  it('of an unknown kind is 400 too, and is answered once', async () => {
    const socket = new PassThrough();
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    server.emit('clientError', new Error('odd'), socket);
    server.emit('clientError', new Error('again'), socket);
    await eventually(() => socket.destroyed, 'its end');
    expect(text.match(/HTTP\/1\.1 400 Bad Request/g)).toHaveLength(1);
    expect(told).toMatchObject([{ status: 400, reason: 'unknown' }]);
  });
});

describe('on a connection with requests', () => {
  it('malformed HTTP is answered after the earlier requests, and nothing after it', async () => {
    const connection = await openRaw(portOf());
    connection.write(`${rawRequest('GET', '/held').repeat(2)}GARBAGE\r\n\r\n`);
    await eventually(() => held.length === 2, 'both requests');
    expect(connection.received()).toBe('');
    expect(connections.running).toBe(2);
    for (const [index, response] of held.entries()) response.end(`held ${index}`);
    await connection.closed;
    const [first, second, third, ...more] = connection.replies();
    expect([first?.text, second?.text, more]).toEqual(['held 0', 'held 1', []]);
    expectProblem(third as RawReply, 400, 'errors/malformed_request');
    expect(connections.running).toBe(0);
  });

  it('CONNECT is refused after the earlier requests too', async () => {
    const connection = await openRaw(portOf());
    connection.write(`${rawRequest('GET', '/held')}CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n`);
    await eventually(() => held.length === 1, 'the request');
    held[0]?.end('held');
    await connection.closed;
    expect(connection.replies().map(({ status }) => status)).toEqual([200, 400]);
  });

  it('after CONNECT a client that leaves is noticed, while an earlier request runs', async () => {
    const connection = await openRaw(portOf());
    connection.write(`${rawRequest('GET', '/held')}CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n`);
    await eventually(() => held.length === 1, 'the request');
    connection.destroy();
    await eventually(() => connections.running === 0 && connections.open === 0, 'the end of the request');
  });

  it('after CONNECT an answer that waits for its client goes on when the client reads', async () => {
    const connection = await openRaw(portOf());
    connection.socket.pause();
    connection.write(`${rawRequest('GET', '/held')}CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n`);
    await eventually(() => held.length === 1, 'the request');
    const [response] = held as [ServerResponse];
    while (response.write('x'.repeat(1_000_000)));
    const drained = new Promise((resolve) => response.once('drain', resolve));
    connection.socket.resume();
    await drained;
    response.end();
    await connection.closed;
    expect(connection.replies().map(({ status }) => status)).toEqual([200, 400]);
  });

  it('a malformed body is answered as its own request', async () => {
    const connection = await openRaw(portOf());
    connection.write(`${rawRequest('POST', '/held', { 'transfer-encoding': 'chunked' })}zz\r\n`);
    await connection.closed;
    expect(connection.replies()).toHaveLength(1);
    expectProblem(connection.replies()[0] as RawReply, 400, 'errors/malformed_request');
    expect(told).toEqual([]);
  });

  it('a body that does not end in time: 408', async () => {
    const connection = await openRaw(portOf());
    connection.write(`${rawRequest('POST', '/held', { 'content-length': '9' })}half`);
    await connection.closed;
    expectProblem(connection.replies()[0] as RawReply, 408, 'errors/request_timeout');
  });

  it('a body that becomes malformed after its answer only closes the connection', async () => {
    const connection = await openRaw(portOf());
    connection.write(rawRequest('POST', '/answered', { 'transfer-encoding': 'chunked' }));
    await eventually(() => connection.received().includes(' 404 '), 'the answer');
    connection.write('zz\r\n');
    await connection.closed;
    expect(connection.received().match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  it('if the last answer closed the connection, nothing more is sent', async () => {
    const connection = await openRaw(portOf());
    connection.write(`${rawRequest('GET', '/held', { connection: 'close' })}GARBAGE\r\n\r\n`);
    await eventually(() => held.length === 1, 'the request');
    held[0]?.end('last');
    await connection.closed;
    expect(connection.replies().map(({ text }) => text)).toEqual(['last']);
  });
});

describe('drain', () => {
  it('resolves when the last answer was sent and no connection is open', async () => {
    const connection = await openRaw(portOf());
    connection.write(rawRequest('GET', '/held'));
    await eventually(() => held.length === 1, 'the request');
    connection.write(rawRequest('GET', '/held'));
    await eventually(() => connections.running === 2, 'the second request');
    const idle = await openRaw(portOf());
    await eventually(() => connections.open === 2, 'both connections');
    let isDrained = false;
    const drained = Promise.all([connections.drain(), connections.drain()]).then(() => {
      isDrained = true;
    });
    held[0]?.end('first');
    await eventually(() => connections.running === 1, 'the first answer');
    await idle.closed;
    expect(isDrained).toBe(false);
    held[1]?.end('second');
    await drained;
    expect(connections).toMatchObject({ running: 0, open: 0 });
    await connections.drain();
    expect(await connection.waitFor(2)).toMatchObject([
      { text: 'first', headers: { connection: 'keep-alive' } },
      { text: 'second', headers: { connection: 'close' } },
    ]);
  });
});
