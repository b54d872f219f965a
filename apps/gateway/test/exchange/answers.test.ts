/** The gateway's own answers reach the client even if its body is incomplete, and no body is read without a bound. */

import { eventually, openRaw, type RawReply, rawRequest } from 'headgate-testbed/raw-http';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { configOf, expectProblem, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

let upstream: Upstream;
let gateway: InProcess;
const OPEN = '/api/v1/open';
const key = { 'x-api-key': TOKEN };
const LONG = 10 * 1024 * 1024;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startInProcess(
    configOf(upstream.url, { drainMs: 500, maxBodyBytes: LONG, routes: [{ route: `POST ${OPEN}` }] }),
  );
});
afterAll(() => gateway.stop());

describe('an answer of the gateway to a request with a body', () => {
  it('of a short length leaves the connection open for the next request', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', '/nowhere', { 'content-length': '65536' }));
    const [first] = await connection.waitFor(1);
    expectProblem(first as RawReply, 404, 'errors/resource_not_found');
    expect(first?.headers.connection).toBe('keep-alive');
    connection.write('x'.repeat(65_536) + rawRequest('POST', OPEN, key, 'body'));
    const [, second] = await connection.waitFor(2);
    expect(second?.status).toBe(200);
    connection.destroy();
  });

  // These wait until the gateway gives the body up, all at the same time.
  it.concurrent('that never ends is cut off after a while; the answer was sent long before', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', '/nowhere', { 'content-length': '10' }));
    connection.write('half');
    const [reply] = await connection.waitFor(1);
    expectProblem(reply as RawReply, 404, 'errors/resource_not_found');
    await connection.closed;
  });

  it.concurrent.each([
    ['too long to be read to its end', { 'content-length': String(LONG) }],
    ['of unknown length', { 'transfer-encoding': 'chunked' }],
  ])('%s: the whole answer comes at once, and the connection closes', async (_title, framing) => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', '/nowhere', framing));
    const [reply] = await connection.waitFor(1);
    expectProblem(reply as RawReply, 404, 'errors/resource_not_found');
    expect(reply?.headers.connection).toBe('close');
    await connection.closed;
  });

  it.concurrent('to HEAD has a head and no body', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('HEAD', '/nowhere', { 'transfer-encoding': 'chunked' }));
    await connection.closed;
    expect(connection.received()).toMatch(/^HTTP\/1\.1 404 Not Found\r\n[\s\S]*\r\n\r\n$/);
  });

  it('a client that sends its whole body before it reads gets the answer too, not a reset', async () => {
    const connection = await openRaw(gateway.port);
    const errors: unknown[] = [];
    connection.socket.on('error', (error) => errors.push(error));
    connection.socket.pause();
    connection.write(rawRequest('POST', OPEN, { ...key, 'content-length': String(LONG + 1) }));
    connection.write(Buffer.alloc(LONG + 1));
    await eventually(() => connection.socket.writableLength === 0, 'the whole body sent');
    connection.socket.resume();
    const [reply] = await connection.waitFor(1);
    expectProblem(reply as RawReply, 413, 'errors/payload_too_large');
    await connection.closed;
    expect(errors).toEqual([]);
  });

  it('Expect: 100-continue gets the refusal instead of 100, and the connection closes without a wait', async () => {
    const connection = await openRaw(gateway.port);
    const expecting = { ...key, expect: '100-continue', 'content-length': String(LONG + 1) };
    connection.write(rawRequest('POST', OPEN, expecting));
    const [reply] = await connection.waitFor(1);
    const began = performance.now();
    await connection.closed;
    expect(performance.now() - began).toBeLessThan(1_000);
    expectProblem(reply as RawReply, 413, 'errors/payload_too_large');
    expect(connection.received()).not.toContain('100 Continue');
  });

  it('an unknown expectation is ignored', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...key, expect: 'tea' }, 'body'));
    expect((await connection.waitFor(1))[0]?.status).toBe(200);
    expect(upstream.last().headers.expect).toBeUndefined();
    connection.destroy();
  });

  it('malformed: 400, then the connection closes, and a next request that has already arrived is not forwarded', async () => {
    const connection = await openRaw(gateway.port);
    const before = upstream.seen.length;
    connection.write(rawRequest('POST', '/a/../b', key) + rawRequest('POST', OPEN, key));
    await connection.closed;
    // A request that was forwarded by mistake would arrive at the upstream before this one.
    expect((await gateway.ask('POST', OPEN)).status).toBe(200);
    expect(connection.replies()).toHaveLength(1);
    expectProblem(connection.replies()[0] as RawReply, 400, 'errors/malformed_request');
    expect(upstream.seen).toHaveLength(before + 1);
  });
});
