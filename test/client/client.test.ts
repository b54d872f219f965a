import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type ClientTimers,
  fetchWithRetry,
  isHeadgateError,
  type Retry,
  type RetryOptions,
} from '../../src/client/fetch-with-retry.ts';
import { serveKeyed } from '../support/keyed-server.ts';
import { type Listening, listen } from '../support/listen.ts';

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

interface Seen {
  readonly key: string | undefined;
  readonly body: string;
  readonly type: string | undefined;
}
type Step = (request: IncomingMessage, response: ServerResponse) => unknown;

/** A server that does one step for each request, and the last one again. */
async function script(...steps: Step[]): Promise<Listening & { seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = await listen(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { 'idempotency-key': key, 'content-type': type } = request.headers;
    seen.push({ key: key as string | undefined, body: Buffer.concat(chunks).toString('latin1'), type });
    await (steps[Math.min(seen.length, steps.length) - 1] as Step)(request, response);
  });
  open.push(server);
  return { ...server, seen };
}

const answers =
  (status: number, headers: Record<string, string> = {}, type?: string): Step =>
  (_, response) =>
    response.writeHead(status, headers).end(type === undefined ? 'text' : JSON.stringify({ type, status }));
const ok = answers(200);
const breaks: Step = (request) => request.socket.destroy();

const ATTEMPT_MS = 5_000;

/** Waits nothing, and notes how long it would have been. */
function instant() {
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
  it('is made where none is given, and is the same on every attempt', async () => {
    const server = await script(breaks, answers(503), ok);
    const { options } = instant();
    expect((await post(server.url, options)).status).toBe(200);
    expect(server.seen).toHaveLength(3);
    expect(new Set(server.seen.map(({ key }) => key)).size).toBe(1);
    expect(server.seen[0]?.key).toMatch(/^[0-9a-f-]{36}$/);
    await post(server.url, options);
    expect(server.seen[3]?.key).not.toBe(server.seen[0]?.key);
  });

  it('may be given, as an option or as the header', async () => {
    const server = await script(ok);
    const { options } = instant();
    await post(server.url, { ...options, key: 'job 7' });
    await post(server.url, options, { headers: { 'Idempotency-Key': 'job 8' } });
    expect(server.seen.map(({ key }) => key)).toEqual(['job 7', 'job 8']);
  });

  it.each(['', ' k', 'k ', 'k'.repeat(256), 'ключ', 'a\nb'])('%j is refused before anything is sent', async (key) => {
    const server = await script(ok);
    await expect(post(server.url, { key })).rejects.toThrow(/^key: must be 1 to 255/);
    expect(server.seen).toEqual([]);
  });

  it('two keys are refused', async () => {
    const given = { headers: { 'idempotency-key': 'a' } };
    await expect(post('http://127.0.0.1:9', { key: 'b' }, given)).rejects.toThrow(/must not differ/);
  });
});

describe('what is tried again', () => {
  it.each<[string, Step]>([
    ['no answer', breaks],
    ['429', answers(429, { 'retry-after': '2' }, 'api/too_many_requests')],
    ["the provider's 429, which does not say when", answers(429, {}, 'provider/too_many_requests')],
    ['409 errors/conflict that says when', answers(409, { 'retry-after': '2' }, 'errors/conflict')],
    ['502', answers(502)],
    ['503', answers(503)],
    ['504', answers(504, {}, 'errors/request_timeout')],
  ])('%s', async (_what, step) => {
    const server = await script(step, ok);
    expect((await post(server.url, instant().options)).status).toBe(200);
    expect(server.seen).toHaveLength(2);
    expect(server.seen[1]).toEqual(server.seen[0]);
  });

  it.each<[string, Step]>([
    ['200', ok],
    ['302', answers(304)],
    ['409 errors/already_used', answers(409, {}, 'errors/already_used')],
    ['409 errors/already_used that says when', answers(409, { 'retry-after': '1' }, 'errors/already_used')],
    ['409 errors/conflict that does not say when: nobody knows its outcome', answers(409, {}, 'errors/conflict')],
    ['409 that is no error object', answers(409, { 'retry-after': '1' })],
    ['400', answers(400)],
    ['401', answers(401)],
    ['404', answers(404)],
    ['413', answers(413)],
    ['422', answers(422, { 'retry-after': '1' })],
    ['500', answers(500)],
    ['a replay, since it stays what it is', answers(503, { 'idempotency-replayed': 'true' })],
    ['a wait of more than maxRetryAfterMs', answers(429, { 'retry-after': '61' })],
  ])('not %s', async (_what, step) => {
    const server = await script(step);
    const response = await post(server.url, instant().options);
    expect(server.seen).toHaveLength(1);
    // Still there to be read.
    if (response.status !== 304) expect((await response.text()).length).toBeGreaterThan(0);
  });

  it('at most `retries` times; the last answer is given', async () => {
    const server = await script(answers(503), answers(503), answers(504));
    const response = await post(server.url, { ...instant().options, retries: 2 });
    expect([response.status, server.seen.length]).toEqual([504, 3]);
    const once = await script(answers(503));
    expect((await post(once.url, { ...instant().options, retries: 0 })).status).toBe(503);
    expect(once.seen).toHaveLength(1);
  });

  it('without any answer it throws what has the key to go on with', async () => {
    const server = await script(breaks);
    const failed: unknown = await post(server.url, { ...instant().options, retries: 1, key: 'k' }).catch(
      (error) => error,
    );
    expect(isHeadgateError(failed, 'request_failed')).toBe(true);
    expect(failed).toMatchObject({ key: 'k', attempts: 2, cause: expect.any(TypeError) });
  });

  it('what fetch itself refuses is refused once', async () => {
    const { options, delays } = instant();
    await expect(fetchWithRetry('no url', {}, options)).rejects.toThrow(TypeError);
    await expect(fetchWithRetry('http://127.0.0.1:9', { method: 'GET', body: 'x' }, options)).rejects.toThrow(
      TypeError,
    );
    expect(delays).toEqual([]);
  });
});

describe('how long it waits', () => {
  const delaysOf = async (more: RetryOptions, ...steps: Step[]) => {
    const server = await script(...steps);
    const { delays, options } = instant();
    await post(server.url, { ...options, ...more }).catch(() => {});
    return delays;
  };

  it('doubles from minDelayMs to maxDelayMs, half of it left to chance', async () => {
    const more = { minDelayMs: 100, maxDelayMs: 500 };
    expect(await delaysOf(more, breaks)).toEqual([50, 100, 200, 250, 250]);
    expect(await delaysOf({ ...more, random: () => 0.999999 }, breaks)).toEqual([100, 200, 400, 500, 500]);
  });

  it('as long as retry-after says, a little more, never less', async () => {
    const step = answers(429, { 'retry-after': '3' });
    expect(await delaysOf({ retries: 1 }, step)).toEqual([3_000]);
    expect(await delaysOf({ retries: 1, random: () => 0.999999 }, step)).toEqual([3_250]);
  });

  it("until a date, by the server's own clock", async () => {
    const date = 'Wed, 21 Oct 2015 07:28:00 GMT';
    const later = (retryAfter: string) => answers(503, { date, 'retry-after': retryAfter });
    expect(await delaysOf({ retries: 1 }, later('Wed, 21 Oct 2015 07:28:04 GMT'))).toEqual([4_000]);
    expect(await delaysOf({ retries: 1 }, later('Wed, 21 Oct 2015 07:27:00 GMT'))).toEqual([0]);
    expect(await delaysOf({ retries: 1, minDelayMs: 100 }, later('soon'))).toEqual([50]);
  });

  it('is told before each wait', async () => {
    const server = await script(breaks, answers(503), ok);
    const told: Retry[] = [];
    await post(server.url, { ...instant().options, key: 'k', onRetry: (retry) => told.push(retry) });
    expect(told).toMatchObject([
      { key: 'k', attempt: 1, delayMs: 250, error: expect.any(Error) },
      { key: 'k', attempt: 2, delayMs: 500, response: { status: 503 } },
    ]);
  });

  it('an attempt without an answer in attemptTimeoutMs is given up, and made again', async () => {
    const server = await script(() => {}, ok);
    const response = await post(server.url, { attemptTimeoutMs: 50, minDelayMs: 1 });
    expect([response.status, server.seen.length]).toEqual([200, 2]);
  });

  it('the body of an answer has the time it needs', async () => {
    const server = await script((_, response) => {
      response.write('half ');
      setTimeout(() => response.end('and half'), 150);
    });
    const response = await post(server.url, { attemptTimeoutMs: 75 });
    expect(await response.text()).toBe('half and half');
  });
});

describe('a signal', () => {
  it('ends an attempt, and the waiting between two, with its reason', async () => {
    const server = await script(() => {});
    const reason = new Error('enough');
    const during = new AbortController();
    setTimeout(() => during.abort(reason), 30);
    await expect(post(server.url, {}, { signal: during.signal })).rejects.toBe(reason);

    const busy = await script(answers(429, { 'retry-after': '30' }));
    const between = new AbortController();
    const onRetry = () => setTimeout(() => between.abort(reason), 10);
    await expect(post(busy.url, { onRetry }, { signal: between.signal })).rejects.toBe(reason);
    await expect(post(busy.url, {}, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(busy.seen).toHaveLength(1);
  });
});

describe('the body', () => {
  it.each<[string, () => NonNullable<RequestInit['body']>]>([
    ['text', () => 'mail é'],
    ['bytes', () => new Uint8Array([0, 255, 10])],
    ['an ArrayBuffer', () => new Uint8Array([1, 2]).buffer],
    ['a view of a part', () => new DataView(new Uint8Array([1, 2, 3, 4]).buffer, 1, 2)],
    ['a Blob', () => new Blob(['blob'], { type: 'text/x' })],
    ['pairs', () => new URLSearchParams({ to: 'a b' })],
  ])('of %s is sent whole on every attempt', async (_what, body) => {
    const server = await script(answers(503), ok);
    await post(server.url, instant().options, { body: body() });
    expect(server.seen[0]?.body.length).toBeGreaterThan(0);
    expect(server.seen[1]).toEqual(server.seen[0]);
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
  ])('that is a %s is refused, with what to do about it', async (_what, body) => {
    const server = await script(ok);
    const refused: unknown = await post(server.url, {}, { body: body() as string }).catch((error) => error);
    expect(isHeadgateError(refused, 'body_not_replayable')).toBe(true);
    expect(server.seen).toEqual([]);
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
  it('I4, I5, I6: FormData whose answer is lost is carried out once, and its caller gets the answer', async () => {
    let sent = 0;
    const server = await serveKeyed(
      (request, response) => {
        sent++;
        // The connection breaks after the work was done.
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
    // Another request meets the limit, and gets past it.
    const headers = { 'x-account': 'a' };
    const calls = [1, 2].map(() => fetchWithRetry(server.url, { method: 'POST', body: 'x', headers }));
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([201, 201]);
  });
});
