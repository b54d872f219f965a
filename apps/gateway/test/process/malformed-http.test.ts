/** Malformed HTTP gets 400 with the whole error object, then the connection closes; the process goes on. */

import { openRaw, pause, type RawReply, rawRequest } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { configOf, expectProblem, type Gateway, startGateway, TOKEN } from '../support/gateway.ts';

let upstream: Upstream;
let gateway: Gateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(configOf(upstream.url));
});
afterEach(async () => {
  expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
});
afterAll(async () => {
  expect((await gateway.stop()).code).toBe(0);
});

const OPEN = 'GET /api/v1/open HTTP/1.1\r\n';
const POST = 'POST /api/v1/open HTTP/1.1\r\n';
const FIELDS = `host: a\r\nx-api-key: ${TOKEN}\r\n`;

const malformed: [title: string, bytes: string][] = [
  ['not HTTP at all', 'GARBAGE\r\n\r\n'],
  ['another protocol', 'EHLO mail.example.test\r\n\r\n'],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
  ['an unknown method', `FETCH /api/v1/open HTTP/1.1\r\n${FIELDS}\r\n`],
  ['an unknown version', `GET /api/v1/open HTTP/9.9\r\n${FIELDS}\r\n`],
  ['the version of another protocol', `GET /api/v1/open HTTP/2.0\r\n${FIELDS}\r\n`],
  ['a space in the target', `GET /api/v1/open now HTTP/1.1\r\n${FIELDS}\r\n`],
  ['a header without a colon', `${OPEN}${FIELDS}broken header\r\n\r\n`],
  ['a space in a header name', `${OPEN}${FIELDS}x y: 1\r\n\r\n`],
  ['a control character in a value', `${OPEN}${FIELDS}x-a: a\x00b\r\n\r\n`],
  ['no host', `${OPEN}x-api-key: ${TOKEN}\r\n\r\n`],
  ['a length that is not a number', `${POST}${FIELDS}content-length: four\r\n\r\nbody`],
  ['a negative length', `${POST}${FIELDS}content-length: -1\r\n\r\n`],
  ['two lengths', `${POST}${FIELDS}content-length: 4\r\ncontent-length: 5\r\n\r\nbody!`],
  ['both a length and chunks', `${POST}${FIELDS}content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
  ['a coding before chunked', `${POST}${FIELDS}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
  [
    'chunks in HTTP/1.0, on a connection that shall stay open',
    `POST /api/v1/open HTTP/1.0\r\n${FIELDS}connection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${OPEN}${FIELDS}\r\n`,
  ],
  ['two hosts', `${OPEN}${FIELDS}host: b\r\n\r\n`],
  ['an encoding after chunked', `${POST}${FIELDS}transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
];

it.each(malformed)('400, the whole error object, then the connection closes: %s', async (_title, bytes) => {
  const before = upstream.seen.length;
  const connection = await openRaw(gateway.port);
  connection.write(Buffer.from(bytes, 'latin1'));
  const replies = await connection.waitFor(1);
  await connection.closed;
  expect(replies).toHaveLength(1);
  expectProblem(replies[0] as RawReply, 400, 'errors/malformed_request');
  expect(connection.replies()).toHaveLength(1);
  expect(upstream.seen).toHaveLength(before);
});

it('headers over the bound: 400 or 431 with the error object, then the connection closes', async () => {
  const connection = await openRaw(gateway.port);
  connection.write(`${OPEN}${FIELDS}x-long: ${'x'.repeat(200_000)}\r\n\r\n`);
  const [reply] = await connection.waitFor(1);
  await connection.closed;
  expect([400, 431]).toContain(reply?.status);
  expect(JSON.parse(reply?.text ?? '')).toMatchObject({
    status: reply?.status,
    type: expect.any(String),
    req_id: expect.any(String),
  });
});

it('a malformed chunk: 400, then the connection closes; the upstream never sees a whole request', async () => {
  const connection = await openRaw(gateway.port);
  connection.write(rawRequest('POST', '/api/v1/open', { 'x-api-key': TOKEN, 'transfer-encoding': 'chunked' }));
  connection.write('zz\r\nhello\r\n0\r\n\r\n');
  await connection.closed;
  const [reply] = connection.replies();
  if (reply !== undefined) expectProblem(reply, 400, 'errors/malformed_request');
  const last = upstream.seen.at(-1);
  if (last?.method === 'POST') expect(await last.whole).toBe(false);
});

it('a good request before a bad one is answered first', async () => {
  const connection = await openRaw(gateway.port);
  connection.write(rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN }));
  await connection.waitFor(1);
  connection.write('GARBAGE\r\n\r\n');
  await connection.closed;
  const [good, bad] = connection.replies();
  expect(good?.status).toBe(200);
  expectProblem(bad as RawReply, 400, 'errors/malformed_request');
});

it('a smuggled second request is not treated as a request', async () => {
  const before = upstream.seen.length;
  const connection = await openRaw(gateway.port);
  const inner = `GET /api/v1/open HTTP/1.1\r\n${FIELDS}\r\n`;
  connection.write(
    `${POST}${FIELDS}content-length: ${inner.length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
  );
  await connection.closed;
  expect(connection.replies().map((reply) => reply.status)).toEqual([400]);
  expect(upstream.seen).toHaveLength(before);
});

const inBody = rawRequest('GET', '/api/v1/open', { 'x-api-key': TOKEN });

it.each([
  ['without a key', 401, '/api/v1/open', { 'content-length': String(inBody.length) }],
  ['to an unknown route', 404, '/nowhere', { 'x-api-key': TOKEN, 'content-length': String(inBody.length) }],
  ['too large', 413, '/api/v1/open', { 'x-api-key': TOKEN, 'content-length': '999999999' }],
])('the unread body of a refused request is never taken for a request: %s', async (_title, status, target, headers) => {
  const before = upstream.seen.length;
  const connection = await openRaw(gateway.port);
  connection.write(rawRequest('POST', target, headers));
  const [reply] = await Promise.race([connection.waitFor(1), pause(200).then(() => connection.replies())]);
  connection.write(inBody);
  const [first] = reply === undefined ? await connection.waitFor(1) : [reply];
  expect(first?.status).toBe(status);
  await Promise.race([connection.closed, pause(150)]);
  expect(connection.replies()).toHaveLength(1);
  expect(upstream.seen).toHaveLength(before);
  connection.destroy();
});

it('HTTP/1.0 without a host is served, and its connection closes', async () => {
  const connection = await openRaw(gateway.port);
  connection.write(`GET /api/v1/open HTTP/1.0\r\nx-api-key: ${TOKEN}\r\n\r\n`);
  await connection.closed;
  expect(connection.received()).toMatch(/^HTTP\/1\.[01] 200 /);
  expect(connection.received().toLowerCase()).not.toContain('transfer-encoding');
});

it('CONNECT is never forwarded', async () => {
  const before = upstream.seen.length;
  const connection = await openRaw(gateway.port);
  connection.write(
    `CONNECT 127.0.0.1:${upstream.port} HTTP/1.1\r\n${FIELDS}\r\nGET /api/v1/open HTTP/1.1\r\nhost: a\r\n\r\n`,
  );
  await connection.closed;
  expect(connection.received()).not.toMatch(/^HTTP\/1\.1 2/);
  expect(upstream.seen).toHaveLength(before);
});

it('connections that send nothing, send half a request, or reset do no harm', async () => {
  for (const bytes of ['', 'GET', `${OPEN}host: a\r\n`, `${POST}${FIELDS}content-length: 9\r\n\r\nhalf`]) {
    const connection = await openRaw(gateway.port);
    connection.write(bytes);
    connection.reset();
  }
  expect((await gateway.ask('GET', '/api/v1/open')).status).toBe(200);
});
