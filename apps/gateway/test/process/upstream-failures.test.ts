/** An upstream that refuses, breaks, is late, or has its own limits (S16). */

import { answer, breakBeforeAnswer, breakMidAnswer, held, startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { configOf, expectProblem, freePort, NO_RATES, ratesOf, startGateway } from '../support/gateway.ts';

const TIMEOUT = 400;

const { upstream, gateway } = await gatewayForFile(configOf, {
  upstreamTimeoutMs: TIMEOUT,
  limits: { default: { allMethods: ['10/1m'] } },
});

const chats = (account: string) => `/api/v1/chats?account_id=${account}`;

describe('refused', () => {
  it('503 errors/network_down, the charge refunded (S13), no rate-limit headers', async () => {
    const port = await freePort();
    const down = await startGateway(
      configOf(`http://127.0.0.1:${port}`, { limits: { default: { allMethods: ['2/1m', '9/1d'] } } }),
    );
    for (let i = 0; i < 4; i += 1) {
      const reply = await down.ask('POST', chats('acc_1'), {}, { body: 'four' });
      expectProblem(reply, 503, 'errors/network_down');
      expect(ratesOf(reply)).toEqual(NO_RATES);
    }
    expectProblem(await down.ask('GET', '/api/v1/open'), 503, 'errors/network_down');
    expect((await down.ask('GET', '/healthz')).status).toBe(200);
    const up = await startUpstream(answer(), port);
    expect(ratesOf(await down.ask('POST', chats('acc_1')))).toMatchObject({ limit: 9, remaining: 8 });
    expect((await down.ask('POST', chats('acc_1'))).status).toBe(200);
    expect((await down.ask('POST', chats('acc_1'))).status).toBe(429);
    expect(up.seen).toHaveLength(2);
    await down.stop();
  });

  it('a name that does not resolve: the same answer', async () => {
    const lost = await startGateway(configOf('http://headgate-upstream.invalid'));
    const reply = await lost.ask('GET', chats('acc_1'));
    expectProblem(reply, 503, 'errors/network_down');
    expect(ratesOf(reply)).toEqual(NO_RATES);
    await lost.stop();
  });
});

describe('broken', () => {
  it.each([
    ['GET', 'acc_1'],
    ['POST', 'acc_2'],
  ])(
    '%s, before an answer: 503, sent once, and charged, because it may have been received',
    async (method, account) => {
      upstream.behave(breakBeforeAnswer);
      expectProblem(await gateway.ask(method, chats(account), {}, { body: 'x' }), 503, 'errors/network_down');
      expect(upstream.seen).toHaveLength(1);
      upstream.behave(answer());
      expect(ratesOf(await gateway.ask(method, chats(account)))).toMatchObject({ limit: 10, remaining: 8 });
    },
  );

  it.each(['GET', 'POST'])('%s, on a connection that was used before: never sent twice', async (method) => {
    for (let i = 0; i < 5; i += 1) {
      upstream.behave(answer());
      expect((await gateway.ask('GET', '/api/v1/open')).status).toBe(200);
      upstream.seen.length = 0;
      upstream.behave(breakBeforeAnswer);
      expectProblem(await gateway.ask(method, '/api/v1/open'), 503, 'errors/network_down');
      expect(upstream.seen).toHaveLength(1);
    }
  });

  it('an answer that is not HTTP: 503 or 500, and the process goes on', async () => {
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.socket?.end('SMTP ready\r\n\r\n');
    });
    const reply = await gateway.ask('GET', '/api/v1/open');
    expectProblem(reply, 503, 'errors/network_down');
    expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
  });

  it.each([
    ['a 101 that was not requested', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['a head over every bound', `HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(1_000_000)}\r\n\r\n`],
    ['a head that stops', 'HTTP/1.1 200 OK\r\nx-half: '],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
  ])('an invalid answer, %s: 503, and the process goes on', async (_title, bytes) => {
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.socket?.end(bytes);
    });
    expectProblem(await gateway.ask('POST', '/api/v1/open'), 503, 'errors/network_down');
    expect(upstream.seen).toHaveLength(1);
    expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
  });

  it('informational answers (103) are not taken for the answer', async () => {
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.writeEarlyHints({ link: '</a.css>; rel=preload' });
      response.end('the answer');
    });
    expect(await gateway.ask('GET', '/api/v1/open')).toMatchObject({ status: 200, text: 'the answer' });
  });

  it.each([
    ['with a length', { 'content-length': '100' }],
    ['chunked', {}],
  ])("in mid-answer, %s: the client's answer breaks off", async (_title, headers) => {
    upstream.behave(breakMidAnswer(headers, 'begun'));
    const reply = await gateway.ask('GET', chats('acc_3'));
    expect(reply).toMatchObject({ status: 200, broken: true });
    expect(['begun', '']).toContain(reply.text);
    expect(upstream.seen).toHaveLength(1);
    expect((await gateway.ask('GET', '/healthz')).status).toBe(200);
  });
});

describe('late', () => {
  it('no head within upstreamTimeoutMs: 504 errors/request_timeout, sent once, charged', async () => {
    const hold = held();
    upstream.behave(hold.behaviour);
    const began = performance.now();
    const reply = await gateway.ask('POST', chats('acc_4'), {}, { body: 'x' });
    const tookMs = performance.now() - began;
    expectProblem(reply, 504, 'errors/request_timeout');
    expect(tookMs).toBeGreaterThan(TIMEOUT - 20);
    expect(tookMs).toBeLessThan(TIMEOUT + 2_500);
    expect(upstream.seen).toHaveLength(1);
    hold.release();
    upstream.behave(answer());
    expect(ratesOf(await gateway.ask('POST', chats('acc_4')))).toMatchObject({ limit: 10, remaining: 8 });
  });

  it('the timeout is for the head: a slow body is passed on', async () => {
    upstream.behave((_seen, response) => {
      response.writeHead(200);
      response.write('slow');
      setTimeout(() => response.end(' body'), TIMEOUT * 3);
    });
    const reply = await gateway.ask('GET', '/api/v1/open');
    expect(reply).toMatchObject({ status: 200, text: 'slow body', broken: false });
  });

  it('an answer just in time is passed on', async () => {
    upstream.behave(answer({ delayMs: TIMEOUT / 4, body: 'in time' }));
    expect(await gateway.ask('GET', '/api/v1/open')).toMatchObject({ status: 200, text: 'in time' });
  });
});

describe("S16: the provider's own 429", () => {
  const theirs = {
    'retry-after': '30',
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': '30',
    'x-ratelimit-remaining-tokens': '0',
  };

  it('is answered as provider/too_many_requests, with its retry-after and none of the fields that look like ours; it stays charged', async () => {
    upstream.behave(answer({ status: 429, headers: theirs, body: 'slow down' }));
    const reply = await gateway.ask('GET', chats('acc_5'));
    expectProblem(reply, 429, 'provider/too_many_requests');
    expect(ratesOf(reply)).toEqual({ ...NO_RATES, retryAfter: 30 });
    expect(Object.keys(reply.headers).filter((name) => name.includes('ratelimit'))).toEqual([
      'x-ratelimit-remaining-tokens',
    ]);
    upstream.behave(answer());
    expect(ratesOf(await gateway.ask('GET', chats('acc_5')))).toMatchObject({ limit: 10, remaining: 8 });
  });

  it('also on a route without an account', async () => {
    upstream.behave(answer({ status: 429, headers: theirs, body: Buffer.alloc(300_000) }));
    const reply = await gateway.ask('GET', '/api/v1/open');
    expectProblem(reply, 429, 'provider/too_many_requests');
    expect(ratesOf(reply)).toEqual({ ...NO_RATES, retryAfter: 30 });
  });

  it('a 429 whose body never ends is answered too', async () => {
    upstream.behave((_seen, response) => {
      response.writeHead(429, theirs);
      response.write('and so on');
    });
    expectProblem(await gateway.ask('GET', chats('acc_6')), 429, 'provider/too_many_requests');
  });
});
