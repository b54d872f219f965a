/**
 * Requests and responses are streamed, a request is never sent twice, and each failure of the upstream has its own
 * error.
 */
import { randomBytes } from 'node:crypto';
import { eventually, oneConnection, openRaw, type RawReply, rawRequest } from 'headgate-testbed/raw-http';
import {
  answer,
  breakBeforeAnswer,
  breakMidAnswer,
  held,
  startUpstream,
  type Upstream,
} from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { configOf, expectProblem, NO_RATES, ratesOf, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const TIMEOUT = 300;
const MAX_BODY = 200_000;
let upstream: Upstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startInProcess(
    configOf(`${upstream.url}/base/`, {
      upstreamTimeoutMs: TIMEOUT,
      maxBodyBytes: MAX_BODY,
      limits: { default: { allMethods: ['10/1m'] } },
    }),
  );
});
afterAll(() => gateway.stop());
beforeEach(() => {
  upstream.seen.length = 0;
  upstream.behave(answer());
});

const OPEN = '/api/v1/open';
const key = { 'x-api-key': TOKEN };
const chats = (account: number) => `/api/v1/chats?account_id=acc_${account}`;
const remainingAfterGet = async (account: number) => ratesOf(await gateway.ask('GET', chats(account))).remaining;

describe('the request', () => {
  it("is sent under the base path, with query, body and the gateway's x-request-id, without the API key", async () => {
    const body = randomBytes(50_000);
    const reply = await gateway.ask('POST', `${OPEN}?a=%2F&&b`, { 'x-request-id': 'mine', 'x-own': '1' }, { body });
    const seen = upstream.last();
    expect(seen).toMatchObject({ method: 'POST', url: `/base${OPEN}?a=%2F&&b` });
    expect(seen.body().equals(body)).toBe(true);
    expect(seen.headers).toMatchObject({ 'x-own': '1', 'content-length': '50000', 'x-forwarded-proto': 'http' });
    expect(seen.headers['x-api-key']).toBeUndefined();
    expect(seen.headers['x-request-id']).toBe(reply.headers['x-request-id']);
    expect(reply.headers['x-request-id']).not.toBe('mine');
  });

  it('Expect: 100-continue is answered, and the body arrives', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...key, expect: '100-continue', 'content-length': '4' }));
    await eventually(() => connection.received().includes(' 100 '), 'the 100');
    connection.write('body');
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply?.status).toBe(200);
    expect(upstream.last().body().toString()).toBe('body');
  });

  it('a chunked body over maxBodyBytes: 413, and the upstream never sees it whole', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', chats(1), { ...key, 'transfer-encoding': 'chunked' }));
    connection.write(`${(MAX_BODY + 1).toString(16)}\r\n${'x'.repeat(MAX_BODY + 1)}\r\n0\r\n\r\n`);
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expectProblem(reply as RawReply, 413, 'errors/payload_too_large');
    for (const seen of upstream.seen) expect(await seen.whole).toBe(false);
  });

  it('a client that stops in the middle of its body: 408, because the upstream is not to blame', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...key, 'content-length': '10' }));
    connection.write('half');
    const [reply] = await connection.waitFor(1);
    expectProblem(reply as RawReply, 408, 'errors/request_timeout');
    expect(await upstream.last().whole).toBe(false);
    connection.destroy();
  });

  it('upstreamTimeoutMs starts again with each piece of the body', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...key, 'content-length': '5' }));
    for (let i = 1; i <= 5; i += 1) {
      const began = performance.now();
      connection.write('x');
      await eventually(() => upstream.seen.length > 0 && upstream.last().bytes() === i, `byte ${i}`);
      await eventually(() => i === 5 || performance.now() - began > TIMEOUT / 3, 'a pause');
    }
    expect((await connection.waitFor(1))[0]?.status).toBe(200);
    connection.destroy();
  });

  it('a client that disconnects during its upload: the upstream gets a broken request; it stays charged', async () => {
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', chats(2), { ...key, 'content-length': '1000' }));
    connection.write('begin');
    await eventually(() => upstream.seen.length > 0 && upstream.last().bytes() > 0, 'the first bytes');
    connection.socket.resetAndDestroy();
    expect(await upstream.last().whole).toBe(false);
    await eventually(() => gateway.lines().some(({ status }) => status === 499), 'its line in the log');
    expect(ratesOf(await gateway.ask('POST', chats(2))).remaining).toBe(8);
  });
});

describe('the response', () => {
  it("S6: a 4xx or 5xx has the window's fields too, instead of the upstream's", async () => {
    upstream.behave(answer({ status: 500, headers: { 'x-ratelimit-limit': '7', 'x-own': '1', date: 'then' } }));
    const reply = await gateway.ask('GET', chats(3));
    expect(reply).toMatchObject({ status: 500, text: '{"ok":true}', headers: { 'x-own': '1', date: 'then' } });
    expect(ratesOf(reply)).toMatchObject({ limit: 10, remaining: 9, reset: 60 });
  });

  it('is streamed: its head before its body, a piece before its end', async () => {
    let more: (text: string) => void = () => {};
    let end: () => void = () => {};
    upstream.behave((_seen, response) => {
      response.writeHead(200, { 'x-head': 'here' }).flushHeaders();
      more = (text) => void response.write(text);
      end = () => response.end();
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', OPEN, key));
    await eventually(() => connection.received().includes('x-head: here'), 'the head');
    more('first');
    await eventually(() => connection.received().includes('first'), 'the first piece');
    end();
    expect((await connection.waitFor(1))[0]?.text).toBe('first');
    connection.destroy();
  });

  it('is read only as fast as the client reads it, and arrives whole', async () => {
    const body = randomBytes(24 * 1024 * 1024);
    const written = { bytes: 0 };
    upstream.behave((_seen, response) => {
      response.writeHead(200, { 'content-length': String(body.length) });
      const push = () => {
        while (written.bytes < body.length) {
          const part = body.subarray(written.bytes, written.bytes + 65_536);
          written.bytes += part.length;
          if (!response.write(part)) return void response.once('drain', push);
        }
        response.end();
      };
      push();
    });
    const connection = await openRaw(gateway.port);
    connection.socket.pause();
    connection.write(rawRequest('GET', OPEN, key));
    let before = -1;
    await eventually(() => {
      const stands = written.bytes > 0 && written.bytes === before;
      before = written.bytes;
      return stands;
    }, 'a standstill');
    expect(written.bytes).toBeLessThan(body.length);
    let got = 0;
    connection.socket.on('data', (chunk: Buffer) => {
      got += chunk.length;
    });
    connection.socket.resume();
    await eventually(() => got > body.length, 'the rest');
    connection.destroy();
  });

  it('informational responses of the upstream are not passed on, only the final one', async () => {
    upstream.behave((_seen, response) => {
      response.writeEarlyHints({ link: '</a>; rel=preload' });
      response.writeHead(201, 'Done well').end('made');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', OPEN, key));
    expect(await connection.waitFor(1)).toMatchObject([{ status: 201, text: 'made' }]);
    expect(connection.received()).toMatch(/^HTTP\/1\.1 201 Done well\r\n/);
    connection.destroy();
  });

  it('a reason that is not ASCII is replaced by the usual one', async () => {
    upstream.behave((_seen, response) => {
      response.socket?.end('HTTP/1.1 202 \u00c4h\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', OPEN, key));
    expect((await connection.waitFor(1))[0]).toMatchObject({ status: 202, text: 'ok' });
    expect(connection.received()).toMatch(/^HTTP\/1\.1 202 Accepted\r\n/);
    connection.destroy();
  });

  it('before the end of the request ends the exchange; the connection can be used again', async () => {
    upstream.behave((_seen, response) => {
      response.writeHead(422, { connection: 'close' }).end('enough');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('POST', OPEN, { ...key, 'content-length': '10' }));
    connection.write('begin');
    expect((await connection.waitFor(1))[0]).toMatchObject({ status: 422, text: 'enough' });
    upstream.behave(answer());
    connection.write(`12345${rawRequest('GET', OPEN, key)}`);
    expect((await connection.waitFor(2))[1]?.status).toBe(200);
    connection.destroy();
  });

  it('ends at the upstream too if the client disconnects in the middle of it', async () => {
    upstream.behave((_seen, response) => {
      response.writeHead(200).write('x');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', OPEN, key));
    await eventually(() => connection.received().includes('\r\n\r\n'), 'the head');
    connection.destroy();
    expect(await upstream.last().over).toBe(false);
    await eventually(() => gateway.lines().some(({ aborted, status }) => aborted && status === 200), 'its line');
  });
});

describe('an upstream', () => {
  it.each(['GET', 'POST'])(
    'that closes the connection to a %s before it responds: 503, sent once, charged, and the charge is shown',
    async (method) => {
      const account = method === 'GET' ? 4 : 5;
      const agent = oneConnection();
      expect((await gateway.ask(method, chats(account), {}, { agent })).status).toBe(200);
      upstream.seen.length = 0;
      upstream.behave(breakBeforeAnswer);
      const reply = await gateway.ask(method, chats(account), {}, { body: 'x', agent });
      expectProblem(reply, 503, 'errors/network_down');
      expect(ratesOf(reply)).toMatchObject({ limit: 10, remaining: 8 });
      expect(upstream.seen).toHaveLength(1);
      upstream.behave(answer());
      expect(ratesOf(await gateway.ask(method, chats(account), {}, { agent })).remaining).toBe(7);
      agent.destroy();
    },
  );

  it.each([
    ['with a length', { 'content-length': '100' }],
    ['chunked', {}],
  ])("that breaks off its response, %s: the client's response breaks off", async (_title, headers) => {
    upstream.behave(breakMidAnswer(headers, 'begun'));
    expect(await gateway.ask('GET', OPEN)).toMatchObject({ status: 200, broken: true });
  });

  it('that breaks off its response to HTTP/1.0: a reset, because a normal close would look like the end', async () => {
    upstream.behave(breakMidAnswer({}, 'begun'));
    const connection = await openRaw(gateway.port);
    const errors: unknown[] = [];
    connection.socket.on('error', ({ code }: NodeJS.ErrnoException) => errors.push(code));
    connection.write(`GET ${OPEN} HTTP/1.0\r\nx-api-key: ${TOKEN}\r\n\r\n`);
    await connection.closed;
    expect(connection.received()).toMatch(/begun$/);
    expect(errors).toEqual(['ECONNRESET']);
  });

  it('that is late: 504 after upstreamTimeoutMs, sent once, charged; its late response is discarded', async () => {
    const late = held();
    upstream.behave(late.behaviour);
    const began = performance.now();
    const reply = await gateway.ask('POST', chats(6), {}, { body: 'x' });
    expectProblem(reply, 504, 'errors/request_timeout');
    expect(ratesOf(reply)).toMatchObject({ limit: 10, remaining: 9 });
    expect(performance.now() - began).toBeGreaterThan(TIMEOUT - 20);
    late.release();
    expect(await upstream.last().over).toBe(false);
    expect(upstream.seen).toHaveLength(1);
    upstream.behave(answer());
    expect(ratesOf(await gateway.ask('POST', chats(6))).remaining).toBe(8);
  });

  it('that does not speak HTTP: 503', async () => {
    upstream.behave((_seen, response) => void response.socket?.end('SMTP ready\r\n\r\n'));
    expectProblem(await gateway.ask('GET', OPEN), 503, 'errors/network_down');
  });
});

describe("S16: the provider's own 429", () => {
  const theirs = { 'retry-after': '30', 'x-ratelimit-limit': '5', 'x-ratelimit-remaining': '0' };

  it.each([
    ['a short body', 'slow down'],
    ['a body too long to be worth reading', Buffer.alloc(2_000_000)],
  ])('%s: the error object with its retry-after alone; it stays charged', async (_title, body) => {
    const account = typeof body === 'string' ? 7 : 8;
    upstream.behave(answer({ status: 429, headers: theirs, body }));
    const reply = await gateway.ask('GET', chats(account));
    expectProblem(reply, 429, 'provider/too_many_requests');
    expect(ratesOf(reply)).toEqual({ ...NO_RATES, retryAfter: 30 });
    upstream.behave(answer());
    expect(await remainingAfterGet(account)).toBe(8);
  });

  it('a body that never ends, or breaks off, delays nothing', async () => {
    upstream.behave((_seen, response) => void response.writeHead(429, theirs).write('and so on'));
    expectProblem(await gateway.ask('GET', OPEN), 429, 'provider/too_many_requests');
    expect(await upstream.last().over).toBe(false);
    upstream.behave((_seen, response) => {
      response.writeHead(429, { 'content-length': '9' }).write('half');
      setImmediate(() => response.socket?.destroy());
    });
    expectProblem(await gateway.ask('GET', OPEN), 429, 'provider/too_many_requests');
    expect(await gateway.metrics()).toContain('headgate_provider_rejections_total{route="unlimited"} 2');
  });
});
