/** Responses of the upstream that a client could mistake: for an error, for the whole, or for another's. */

import { eventually, openRaw, rawRequest } from 'headgate-testbed/raw-http';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { configOf, expectProblem, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { expectOriginal, expectReplay, freshKey, keyedConfig, post, rawPost } from '../support/keyed.ts';
import { okay, type RawUpstream, startRawUpstream } from '../support/raw-upstream.ts';

const PLAIN = '/api/v1/plain?account_id=acc_1';
const SMALL = '/api/v1/small';
let upstream: RawUpstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startRawUpstream();
  gateway = await startInProcess(keyedConfig(upstream.url));
});
beforeEach(() => {
  upstream.requests.length = 0;
  upstream.behave((socket) => void socket.write(okay()));
});

/** Answers with these bytes; then the connection ends, is reset, or stays open. */
function answerWith(bytes: string, then: 'end' | 'reset' | 'stay'): void {
  upstream.behave((socket) => {
    socket.write(bytes, 'latin1');
    // A reset would discard what was not read yet.
    if (then === 'reset') setTimeout(() => socket.resetAndDestroy(), 50);
    if (then === 'end') socket.end();
  });
}

describe('informational responses that no one asked for', () => {
  it.each([
    [100, 0],
    [100, 20],
    [102, 20],
    [103, 20],
    [199, 20],
  ])('a %i, %i ms in front of the response, is not the response', async (status, ms) => {
    upstream.behave((socket) => {
      socket.write(`HTTP/1.1 ${status} Whatever\r\nlink: </a>\r\n\r\n`);
      if (ms === 0) socket.write(okay('done'));
      else setTimeout(() => socket.write(okay('done')), ms);
    });
    expect(await gateway.ask('POST', PLAIN)).toMatchObject({ status: 200, text: 'done' });
    const key = freshKey();
    const original = await post(gateway, key);
    expectOriginal(original);
    expect(original.text).toBe('done');
    expectReplay(await post(gateway, key), original);
    expect(upstream.requests).toHaveLength(2);
  });

  it('many of them do not extend upstreamTimeoutMs', async () => {
    const brief = await startInProcess(keyedConfig(upstream.url, { upstreamTimeoutMs: 200 }));
    upstream.behave((socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20);
      socket.once('close', () => clearInterval(timer));
    });
    expectProblem(await brief.ask('POST', PLAIN), 504, 'errors/request_timeout');
  });

  it.each([
    ['without Upgrade', ''],
    ['with Upgrade', 'Upgrade: x\r\nConnection: upgrade\r\n'],
  ])('a 101 %s is an error', async (_title, fields) => {
    answerWith(`HTTP/1.1 101 Switching Protocols\r\n${fields}\r\n${okay('tunnel')}`, 'stay');
    expectProblem(await gateway.ask('POST', PLAIN), 503, 'errors/network_down');
    expect(upstream.requests).toHaveLength(1);
  });
});

it.each(['000', '099'])(
  'a status of %s is an error, stored under a key, and its connection is closed',
  async (status) => {
    answerWith(`HTTP/1.1 ${status} Whatever\r\nContent-Length: 2\r\n\r\nok`, 'stay');
    expectProblem(await gateway.ask('POST', PLAIN), 503, 'errors/network_down');
    const key = freshKey();
    const original = await post(gateway, key);
    expectProblem(original, 503, 'errors/network_down');
    expectReplay(await post(gateway, key), original);
    await eventually(async () => /connections_in_use 0$/m.test(await gateway.metrics()), 'the end of the connections');
  },
);

it.each([
  ['bare line feeds', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok'],
  ['another protocol', '220 mail.example ESMTP\r\n'],
])('a head with %s is an error at once, and counts as invalid', async (_title, bytes) => {
  // The test would end before the gateway stopped waiting.
  const patient = await startInProcess(keyedConfig(upstream.url, { upstreamTimeoutMs: 3_600_000 }));
  answerWith(bytes, 'stay');
  expectProblem(await patient.ask('POST', PLAIN), 503, 'errors/network_down');
  expect(await patient.metrics()).toMatch(/upstream_errors_total\{[^}]*cause="invalid"\} 1$/m);
  await patient.stop();
});

describe("a response that only the connection's end delimits", () => {
  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n';

  it('is whole if the connection ends, and replayed', async () => {
    answerWith(`${HEAD}all of it`, 'end');
    const key = freshKey();
    const original = await post(gateway, key);
    expect(original).toMatchObject({ status: 200, text: 'all of it', broken: false });
    expectReplay(await post(gateway, key), original);
  });

  it('I7: breaks off if the connection is reset, and is not replayed', async () => {
    answerWith(`${HEAD}half of`, 'reset');
    expect(await gateway.ask('POST', PLAIN)).toMatchObject({ status: 200, broken: true });
    const key = freshKey();
    expect(await post(gateway, key)).toMatchObject({ status: 200, broken: true });
    const { detail } = expectProblem(await post(gateway, key), 409, 'errors/already_used');
    expect(detail).toMatch(/200/);
    expect(upstream.requests).toHaveLength(2);
  });
});

describe('the framing of the response', () => {
  it('bytes behind a response are not the response to the next request', async () => {
    answerWith(`${okay('mine')}${okay('stray')}`, 'stay');
    expect(await gateway.ask('POST', PLAIN)).toMatchObject({ status: 200, text: 'mine' });
    upstream.behave((socket) => void socket.write(okay('next')));
    expect(await gateway.ask('POST', PLAIN)).toMatchObject({ status: 200, text: 'next' });
  });

  it('nor are bytes that come on an idle connection, such as a 408', async () => {
    expect((await gateway.ask('POST', PLAIN)).status).toBe(200);
    const idle = upstream.connections.filter(({ destroyed }) => !destroyed);
    for (const socket of idle) socket.write('HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n');
    await eventually(() => idle.every(({ destroyed }) => destroyed), 'the end of the connections');
    expect(await gateway.ask('POST', PLAIN)).toMatchObject({ status: 200, text: 'ok' });
  });

  it.each([
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 43'],
    ['GET', 'HTTP/1.1 204 No Content\r\nContent-Length: 43'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 43'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked'],
  ])('nor is a body that must not be there, to %s: %j', async (method, head) => {
    // One connection, so that the second request waits for that of the first one.
    const config = configOf(upstream.url, { maxUpstreamConnections: 1 });
    const narrow = await startInProcess(config);
    upstream.behave((socket, request) => {
      if (request.includes('/open')) socket.write(okay('mine'));
      else
        void eventually(async () => /upstream_waiting 1$/m.test(await narrow.metrics()), 'the second request').then(
          () => {
            socket.write(`${head}\r\n\r\n`);
            upstream.behave((next) => {
              // It comes behind the head, when the second request has been sent.
              if (next === socket) socket.write(okay('stray'));
              else next.write(okay('mine'));
            });
          },
        );
    });
    const first = narrow.ask(method, '/api/v1/chats?account_id=acc_1');
    await eventually(() => upstream.requests.length === 1, 'the first request');
    expect(await narrow.ask('GET', '/api/v1/open')).toMatchObject({ status: 200, text: 'mine' });
    expect((await first).text).toBe('');
  });

  it.each([204, 304])('a %i with a content-length on a connection that stays open is complete', async (status) => {
    answerWith(`HTTP/1.1 ${status} Whatever\r\nContent-Length: 5\r\n\r\n`, 'stay');
    expect(await gateway.ask('POST', PLAIN)).toMatchObject({ status, text: '', broken: false });
  });

  it.each([
    ['both lengths', 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
    ['another coding', 'Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
    ['a coding after chunked', 'Transfer-Encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n'],
  ])('%s: 503, because no one can tell where it ends', async (_title, rest) => {
    answerWith(`HTTP/1.1 200 OK\r\n${rest}`, 'end');
    expectProblem(await gateway.ask('POST', PLAIN), 503, 'errors/network_down');
    expect(upstream.requests).toHaveLength(1);
  });

  it('fields past the thousandth are passed on, and so are bytes above ASCII', async () => {
    const fields = Array.from({ length: 1_100 }, (_, i) => `x${i}: \u00e9\r\n`).join('');
    answerWith(okay('many', fields), 'stay');
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', PLAIN, { 'x-api-key': TOKEN }));
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply).toMatchObject({ status: 200, text: 'many', headers: { x1099: '\u00e9' } });
  });
});

describe('the request', () => {
  it('bytes above ASCII in a field are sent as they came, even before a slow body', async () => {
    const connection = await openRaw(gateway.port);
    const head = rawRequest('POST', PLAIN, { 'x-api-key': TOKEN, 'x-name': 'caf\u00e9', 'content-length': '4' });
    connection.write(Buffer.from(head, 'latin1'));
    await eventually(() => upstream.requests.length === 1, 'the head');
    connection.write('body');
    await connection.waitFor(1);
    connection.destroy();
    expect(upstream.requests[0]).toContain('x-name: caf\u00e9\r\n');
  });

  it.each([
    ['GET', /\r\n(?:content-length|transfer-encoding):/i, false],
    ['DELETE', /\r\n(?:content-length|transfer-encoding):/i, false],
    ['POST', /\r\ncontent-length: 0\r\n/i, true],
    ['PROPFIND', /\r\ncontent-length: 0\r\n/i, true],
  ])('%s without a body says so', async (method, pattern, isStated) => {
    const any = await startInProcess(keyedConfig(upstream.url, { routes: [{ route: `${method} /any` }] }));
    expect((await any.ask(method, '/any')).status).toBe(200);
    expect(pattern.test(upstream.requests[0] as string)).toBe(isStated);
    expect(upstream.requests[0]).not.toMatch(/transfer-encoding/i);
  });
});

describe('a response that does not end', () => {
  /** Sends the head, and then a piece every few milliseconds until its connection is closed. */
  function streamForever(piece: string): void {
    upstream.behave((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      const timer = setInterval(() => socket.write(piece), 10);
      socket.once('close', () => clearInterval(timer));
    });
  }

  it('I7: with a key, past maxKeptBytes it is read only as long as the client is there', async () => {
    streamForever('x'.repeat(500));
    const key = freshKey();
    const client = await openRaw(gateway.port);
    client.write(rawPost(key, SMALL));
    await eventually(() => client.received().length > 3_000, 'more than is stored');
    expect(upstream.open()).toBeGreaterThan(0);
    const socket = upstream.connections.at(-1);
    expect(socket?.destroyed).toBe(false);
    client.destroy();
    await eventually(() => socket?.destroyed, 'the end of the connection to the upstream');
    const { detail } = expectProblem(await post(gateway, key, { path: SMALL }), 409, 'errors/already_used');
    expect(detail).toMatch(/200/);
    expect(upstream.requests).toHaveLength(1);
  });

  it('I7, I11: if the client leaves first, it is read until it is too long to store', async () => {
    streamForever('x'.repeat(50));
    const key = freshKey();
    const client = await openRaw(gateway.port);
    client.write(rawPost(key, SMALL));
    await eventually(() => client.received().includes('200 OK'), 'the head');
    client.destroy();
    const socket = upstream.connections.at(-1);
    await eventually(() => socket?.destroyed, 'the end of the connection to the upstream');
    expect(socket?.bytesWritten).toBeGreaterThan(1_000);
    expectProblem(await post(gateway, key, { path: SMALL }), 409, 'errors/already_used');
  });

  it('upstreamAnswerMs: with a key, its outcome is stored without its body; without one, it breaks off', async () => {
    const brief = await startInProcess(keyedConfig(upstream.url, { upstreamAnswerMs: 200 }));
    streamForever('x');
    const key = freshKey();
    expect(await post(brief, key)).toMatchObject({ status: 200, broken: true });
    const { detail } = expectProblem(await post(brief, key), 409, 'errors/already_used');
    expect(detail).toMatch(/200/);
    expect(await brief.ask('POST', PLAIN)).toMatchObject({ status: 200, broken: true });
    await eventually(async () => (await brief.metrics()).includes('upstream_connections_in_use 0'), 'their ends');
  });

  it('upstreamAnswerMs does not start again with each piece of the request', async () => {
    const brief = await startInProcess(keyedConfig(upstream.url, { upstreamAnswerMs: 300 }));
    streamForever('x');
    const client = await openRaw(brief.port);
    client.write(rawRequest('POST', PLAIN, { 'x-api-key': TOKEN, 'content-length': '100000' }));
    const upload = setInterval(() => client.write('x'), 20);
    await client.closed;
    clearInterval(upload);
    expect(client.received()).toContain('200 OK');
    expect(client.replies()).toEqual([]);
  });

  it('upstreamAnswerMs starts with the head, and does not concern a response that ends in time', async () => {
    const brief = await startInProcess(keyedConfig(upstream.url, { upstreamAnswerMs: 400 }));
    upstream.behave((socket) => {
      setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no'), 500);
      setTimeout(() => socket.write('k'), 550);
    });
    expect(await brief.ask('POST', PLAIN)).toMatchObject({ status: 200, text: 'ok', broken: false });
  });
});
