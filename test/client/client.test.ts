import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Listening, listen } from 'headgate-testbed/listen';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type ClientTimers,
  fetchWithRetry,
  isHeadgateError,
  type Retry,
  type RetryOptions,
} from '../../src/client/fetch-with-retry.ts';
import { serveKeyed } from '../support/keyed-server.ts';

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

interface ReceivedRequest {
  readonly key: string | undefined;
  readonly body: string;
  readonly type: string | undefined;
}
type Step = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A server that handles each request with the next step, and all further requests with the last step. */
async function startServer(...steps: Step[]): Promise<Listening & { received: ReceivedRequest[] }> {
  const received: ReceivedRequest[] = [];
  const server = await listen(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { 'idempotency-key': key, 'content-type': type } = request.headers;
    received.push({ key: key as string | undefined, body: Buffer.concat(chunks).toString('latin1'), type });
    await (steps[Math.min(received.length, steps.length) - 1] as Step)(request, response);
  });
  open.push(server);
  return { ...server, received };
}

const respond =
  (status: number, headers: Record<string, string> = {}, type?: string): Step =>
  (_, response) =>
    response.writeHead(status, headers).end(type === undefined ? 'text' : JSON.stringify({ type, status }));
const ok = respond(200);
const breakConnection: Step = (request) => request.socket.destroy();

const ATTEMPT_MS = 5_000;

/** Options with timers that do not wait, and a list of the delays for which they were asked. */
function withoutWaiting() {
  const delays: number[] = [];
  const timers: ClientTimers = {
    after(ms, call) {
      if (ms === ATTEMPT_MS) return () => {};
      delays.push(ms);
      const timer = setImmediate(call);
      return () => clearImmediate(timer);
    },
  };
  const options: RetryOptions = { timers, attemptTimeoutMs: ATTEMPT_MS, random: () => 0 };
  return { delays, options };
}

const post = (url: string, options: RetryOptions, init: RequestInit = {}) =>
  fetchWithRetry(url, { method: 'POST', body: 'mail', ...init }, options);

describe('the key', () => {
  it('is created if none is passed, and is the same on every attempt', async () => {
    const server = await startServer(breakConnection, respond(503), ok);
    const { options } = withoutWaiting();
    expect((await post(server.url, options)).status).toBe(200);
    expect(server.received).toHaveLength(3);
    expect(new Set(server.received.map(({ key }) => key)).size).toBe(1);
    expect(server.received[0]?.key).toMatch(/^[0-9a-f-]{36}$/);
    await post(server.url, options);
    expect(server.received[3]?.key).not.toBe(server.received[0]?.key);
  });

  it('may be passed as an option or as the header', async () => {
    const server = await startServer(ok);
    const { options } = withoutWaiting();
    await post(server.url, { ...options, key: 'job 7' });
    await post(server.url, options, { headers: { 'Idempotency-Key': 'job 8' } });
    expect(server.received.map(({ key }) => key)).toEqual(['job 7', 'job 8']);
  });

  it.each(['', ' k', 'k ', 'k'.repeat(256), 'ключ', 'a\nb'])('%j is refused before anything is sent', async (key) => {
    const server = await startServer(ok);
    await expect(post(server.url, { key })).rejects.toThrow(/^key: must be 1 to 255/);
    expect(server.received).toEqual([]);
  });

  it('is refused if the option and the header differ', async () => {
    const init = { headers: { 'idempotency-key': 'a' } };
    await expect(post('http://127.0.0.1:9', { key: 'b' }, init)).rejects.toThrow(/must not differ/);
  });
});

describe('a retry', () => {
  it.each<[string, Step]>([
    ['no response', breakConnection],
    ['429', respond(429, { 'retry-after': '2' }, 'api/too_many_requests')],
    ["the provider's 429, without retry-after", respond(429, {}, 'provider/too_many_requests')],
    ['409 errors/conflict with retry-after', respond(409, { 'retry-after': '2' }, 'errors/conflict')],
    ['502', respond(502)],
    ['503', respond(503)],
    ['504', respond(504, {}, 'errors/request_timeout')],
  ])('follows %s', async (_what, step) => {
    const server = await startServer(step, ok);
    expect((await post(server.url, withoutWaiting().options)).status).toBe(200);
    expect(server.received).toHaveLength(2);
    expect(server.received[1]).toEqual(server.received[0]);
  });

  it.each<[string, Step]>([
    ['200', ok],
    ['304', respond(304)],
    ['409 errors/already_used', respond(409, {}, 'errors/already_used')],
    ['409 errors/already_used with retry-after', respond(409, { 'retry-after': '1' }, 'errors/already_used')],
    ['409 errors/conflict without retry-after: its outcome is unknown', respond(409, {}, 'errors/conflict')],
    ['409 without an error object', respond(409, { 'retry-after': '1' })],
    ['400', respond(400)],
    ['401', respond(401)],
    ['404', respond(404)],
    ['413', respond(413)],
    ['422', respond(422, { 'retry-after': '1' })],
    ['500', respond(500)],
    ['a replayed response, because it does not change', respond(503, { 'idempotency-replayed': 'true' })],
    ['a cost that never fits', respond(422, {}, 'api/cost_exceeds_limit')],
    ['a retry-after of more than maxRetryAfterMs', respond(429, { 'retry-after': '61' })],
  ])('does not follow %s', async (_what, step) => {
    const server = await startServer(step);
    const response = await post(server.url, withoutWaiting().options);
    expect(server.received).toHaveLength(1);
    // The body can still be read.
    if (response.status !== 304) expect((await response.text()).length).toBeGreaterThan(0);
  });

  it('happens at most `retries` times; then the last response is returned', async () => {
    const server = await startServer(respond(503), respond(503), respond(504));
    const response = await post(server.url, { ...withoutWaiting().options, retries: 2 });
    expect([response.status, server.received.length]).toEqual([504, 3]);
    const once = await startServer(respond(503));
    expect((await post(once.url, { ...withoutWaiting().options, retries: 0 })).status).toBe(503);
    expect(once.received).toHaveLength(1);
  });

  it('that gets no response throws an error with the key', async () => {
    const server = await startServer(breakConnection);
    const failed: unknown = await post(server.url, { ...withoutWaiting().options, retries: 1, key: 'k' }).catch(
      (error) => error,
    );
    expect(isHeadgateError(failed, 'request_failed')).toBe(true);
    expect(failed).toMatchObject({ key: 'k', attempts: 2, cause: expect.any(TypeError) });
  });

  it('does not follow an error in the arguments of fetch', async () => {
    const { options, delays } = withoutWaiting();
    await expect(fetchWithRetry('no url', {}, options)).rejects.toThrow(TypeError);
    const request = new Request('http://127.0.0.1:9', { method: 'POST', body: 'x' });
    await expect(fetchWithRetry(request as never, {}, options)).rejects.toThrow(
      /^input: must be a URL: pass .* in init/,
    );
    await expect(fetchWithRetry('http://127.0.0.1:9', { method: 'GET', body: 'x' }, options)).rejects.toThrow(
      TypeError,
    );
    expect(delays).toEqual([]);
  });
});

describe('the wait before a retry', () => {
  const delaysOf = async (more: RetryOptions, ...steps: Step[]) => {
    const server = await startServer(...steps);
    const { delays, options } = withoutWaiting();
    await post(server.url, { ...options, ...more }).catch(() => {});
    return delays;
  };

  it('doubles from minDelayMs to maxDelayMs, and half of it is random', async () => {
    const more = { minDelayMs: 100, maxDelayMs: 500 };
    expect(await delaysOf(more, breakConnection)).toEqual([50, 100, 200, 250, 250]);
    expect(await delaysOf({ ...more, random: () => 0.999999 }, breakConnection)).toEqual([100, 200, 400, 500, 500]);
  });

  it('is as long as retry-after, or a little longer, never shorter', async () => {
    const step = respond(429, { 'retry-after': '3' });
    expect(await delaysOf({ retries: 1 }, step)).toEqual([3_000]);
    expect(await delaysOf({ retries: 1, random: () => 0.999999 }, step)).toEqual([3_250]);
  });

  it("ends at the date in retry-after, by the server's own clock", async () => {
    const date = 'Wed, 21 Oct 2015 07:28:00 GMT';
    const later = (retryAfter: string) => respond(503, { date, 'retry-after': retryAfter });
    expect(await delaysOf({ retries: 1 }, later('Wed, 21 Oct 2015 07:28:04 GMT'))).toEqual([4_000]);
    expect(await delaysOf({ retries: 1 }, later('Wed, 21 Oct 2015 07:27:00 GMT'))).toEqual([0]);
    expect(await delaysOf({ retries: 1, minDelayMs: 100 }, later('soon'))).toEqual([50]);
  });

  it('is a number of seconds with a fraction too; anything else that is not a date is ignored', async () => {
    const date = 'Wed, 21 Oct 2015 07:28:00 GMT';
    const delayOf = (retryAfter: string) =>
      delaysOf({ retries: 1, minDelayMs: 100 }, respond(503, { date, 'retry-after': retryAfter }));
    const delays: number[] = [];
    for (const value of ['1.5', '0.5', '0.0001', '-1', '+5', '1e3', '.5', '5.']) delays.push(...(await delayOf(value)));
    expect(delays).toEqual([1_500, 500, 1, 50, 50, 50, 50, 50]);
  });

  it('is announced to onRetry', async () => {
    const server = await startServer(breakConnection, respond(503), ok);
    const retries: Retry[] = [];
    await post(server.url, { ...withoutWaiting().options, key: 'k', onRetry: (retry) => retries.push(retry) });
    expect(retries).toMatchObject([
      { key: 'k', attempt: 1, delayMs: 250, error: expect.any(Error) },
      { key: 'k', attempt: 2, delayMs: 500, response: { status: 503 } },
    ]);
  });

  it('follows an attempt that gets no response within attemptTimeoutMs', async () => {
    const server = await startServer(() => {}, ok);
    const response = await post(server.url, { attemptTimeoutMs: 500, minDelayMs: 1 });
    expect([response.status, server.received.length]).toEqual([200, 2]);
  });

  it('attemptTimeoutMs does not limit the time for the body of the response', async () => {
    const server = await startServer((_, response) => {
      response.write('half ');
      setTimeout(() => response.end('and half'), 800);
    });
    const response = await post(server.url, { attemptTimeoutMs: 500 });
    expect(await response.text()).toBe('half and half');
  });
});

describe('a signal', () => {
  it('ends an attempt, and the wait between two attempts, with its reason', async () => {
    const server = await startServer(() => {});
    const reason = new Error('enough');
    const during = new AbortController();
    setTimeout(() => during.abort(reason), 30);
    await expect(post(server.url, {}, { signal: during.signal })).rejects.toBe(reason);

    const busy = await startServer(respond(429, { 'retry-after': '30' }));
    const between = new AbortController();
    const onRetry = () => setTimeout(() => between.abort(reason), 10);
    await expect(post(busy.url, { onRetry }, { signal: between.signal })).rejects.toBe(reason);
    await expect(post(busy.url, {}, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(busy.received).toHaveLength(1);
  });
});

describe('the body', () => {
  it.each<[string, () => NonNullable<RequestInit['body']>]>([
    ['text', () => 'mail é'],
    ['bytes', () => new Uint8Array([0, 255, 10])],
    ['an ArrayBuffer', () => new Uint8Array([1, 2]).buffer],
    ['a view of a part of an ArrayBuffer', () => new DataView(new Uint8Array([1, 2, 3, 4]).buffer, 1, 2)],
    ['a Blob', () => new Blob(['blob'], { type: 'text/x' })],
    ['URLSearchParams', () => new URLSearchParams({ to: 'a b' })],
  ])('is sent completely on every attempt: %s', async (_what, body) => {
    const server = await startServer(respond(503), ok);
    await post(server.url, withoutWaiting().options, { body: body() });
    expect(server.received[0]?.body.length).toBeGreaterThan(0);
    expect(server.received[1]).toEqual(server.received[0]);
  });

  it.each<[string, () => unknown]>([
    ['stream', () => new Blob(['x']).stream()],
    [
      'generator',
      async function* () {
        yield 'x';
      },
    ],
    ['object', () => ({ to: 'a' })],
  ])('is refused if it is of type %s', async (_what, body) => {
    const server = await startServer(ok);
    const refused: unknown = await post(server.url, {}, { body: body() as string }).catch((error) => error);
    expect(isHeadgateError(refused, 'body_not_replayable')).toBe(true);
    expect(server.received).toEqual([]);
  });
});

describe('options', () => {
  it.each([
    [{ retries: -1 }, /retries: must be an integer/],
    [{ minDelayMs: 0.5 }, /minDelayMs: must be an integer/],
    [{ attemptTimeoutMs: Number.NaN }, /attemptTimeoutMs: must be/],
    [{ retry: 1 }, /retry: unknown option/],
  ])('%j is refused by name', async (options, message) => {
    await expect(post('http://127.0.0.1:9', options as RetryOptions)).rejects.toThrow(message);
  });
});

describe('against a gate', () => {
  it('I4, I5, I6: FormData whose response is lost is executed once, and the caller gets the response', async () => {
    let sent = 0;
    const server = await serveKeyed(
      (request, response) => {
        sent++;
        // The connection breakConnection after the work was done.
        if (sent === 1) request.socket.destroy();
        response.writeHead(201).end(`sent ${sent}`);
      },
      { allMethods: ['1/1s'] },
    );
    open.push(server);
    const form = new FormData();
    form.append('file', new Blob([Buffer.alloc(100_000)]), 'a.bin');
    const response = await fetchWithRetry(`${server.url}/mail`, { method: 'POST', body: form }, { minDelayMs: 10 });
    expect([response.status, await response.text(), sent]).toEqual([201, 'sent 1', 1]);
    expect(response.headers.get('idempotency-replayed')).toBe('true');
    // Another request is rejected by the limit first, and accepted after a retry.
    const headers = { 'x-account': 'a' };
    const calls = [1, 2].map(() => fetchWithRetry(server.url, { method: 'POST', body: 'x', headers }));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([201, 201]);
  });
});
