/** Pages of other origins: preflights, and the fields of CORS on every answer. */

import { eventually, openRaw, type RawReply, type Reply, rawRequest } from 'headgate-testbed/raw-http';
import { answer, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { configOf, expectProblem } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const PAGE = 'https://app.example.com';
const OTHER = 'https://evil.example';
const NO_KEY = { 'x-api-key': undefined };

let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
beforeEach(() => {
  upstream.seen.length = 0;
  upstream.behave(answer());
});

const ROUTES = [
  { route: 'GET /chats', account: 'query.account_id' },
  { route: 'POST /chats', account: 'header.x-account-id', idempotent: true },
  { route: 'DELETE /chats/{id}' },
  { route: 'GET /files/*' },
  { route: 'OPTIONS /own' },
];

const start = (cors: object | undefined, rest: object = {}) =>
  startInProcess(configOf(upstream.url, { routes: ROUTES, ...(cors && { cors }), ...rest }));

const preflight = (gateway: InProcess, path: string, origin = PAGE, method = 'POST') =>
  gateway.ask('OPTIONS', path, { ...NO_KEY, origin, 'access-control-request-method': method });

/** The fields of CORS of an answer, without the prefix. */
function corsOf({ headers }: Pick<Reply, 'headers'> | RawReply): Record<string, unknown> {
  const fields = Object.entries(headers).filter(([name]) => name.startsWith('access-control-'));
  return Object.fromEntries(fields.map(([name, value]) => [name.slice('access-control-'.length), value]));
}

const EXPOSED =
  'x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, ratelimit, ratelimit-policy, retry-after, x-request-id, idempotency-replayed, idempotency-status';
const ALLOWED = { 'allow-origin': PAGE, 'expose-headers': EXPOSED };

describe('a preflight', () => {
  let gateway: InProcess;
  beforeAll(async () => {
    gateway = await start({ origins: [PAGE, 'http://localhost:3000'], headers: ['X-Trace'] });
  });
  afterAll(() => gateway.stop());

  it('of a listed path is answered without a key and without the upstream', async () => {
    const reply = await preflight(gateway, '/chats?account_id=acc_1');
    expect(reply).toMatchObject({ status: 204, text: '', headers: { vary: 'Origin' } });
    expect(corsOf(reply)).toEqual({
      ...ALLOWED,
      'allow-methods': 'GET, HEAD, POST',
      'allow-headers': 'x-api-key, authorization, idempotency-key, content-type, x-account-id, X-Trace',
      'max-age': '600',
    });
    expect(reply.headers['content-length']).toBeUndefined();
    expect(upstream.seen).toHaveLength(0);
  });

  it.each([
    ['/chats/7', 'DELETE'],
    ['/files/a/b', 'GET, HEAD'],
    ['/own', 'OPTIONS'],
  ])('lists the methods of the routes that match the path: %s', async (path, methods) => {
    expect(corsOf(await preflight(gateway, path))['allow-methods']).toBe(methods);
  });

  it('from an origin that is not listed gets no field of CORS', async () => {
    for (const origin of [OTHER, 'null', 'https://app.example.com.evil.example', 'http://localhost', '*']) {
      const reply = await preflight(gateway, '/chats', origin);
      expect(reply).toMatchObject({ status: 204, headers: { vary: 'Origin' } });
      expect(corsOf(reply)).toEqual({});
    }
  });

  it('of a path that is not listed is 404, of a hostile one 400; the page may read both', async () => {
    const unlisted = await preflight(gateway, '/nowhere');
    expectProblem(unlisted, 404, 'errors/resource_not_found');
    expect(corsOf(unlisted)).toEqual(ALLOWED);
    for (const path of ['/files/..%2fchats', '/files/%2e%2e/chats', '/files/a%5cb'])
      expectProblem(await preflight(gateway, path), 400, 'errors/malformed_request');
    const raw = await openRaw(gateway.port);
    const bad = rawRequest('OPTIONS', '/chats', { origin: PAGE, 'access-control-request-method': 'POST' });
    raw.write(bad.replace('host: gateway.test\r\n', ''));
    const [reply] = await raw.waitFor(1);
    expectProblem(reply as RawReply, 400, 'errors/malformed_request');
    raw.destroy();
  });

  it('has a label and a decision of its own in metrics and log', async () => {
    await preflight(gateway, '/chats');
    await eventually(
      async () => /^headgate_requests_total\{.*"preflight".*\}/m.test(await gateway.metrics()),
      'the metric',
    );
    await eventually(() => gateway.lines().some(({ decision }) => decision === 'preflight'), 'the line');
  });

  it('is the only OPTIONS that the gateway answers itself', async () => {
    const plain = await gateway.ask('OPTIONS', '/own', { origin: PAGE });
    expect(plain.status).toBe(200);
    expect(upstream.last().method).toBe('OPTIONS');
    expectProblem(await gateway.ask('OPTIONS', '/chats', { origin: PAGE }), 404, 'errors/resource_not_found');
    const keyless = await gateway.ask('OPTIONS', '/own', { ...NO_KEY, 'access-control-request-method': 'GET' });
    expectProblem(keyless, 401, 'errors/missing_credentials');
  });

  it('with strictSiblings names no route that refuses the path', async () => {
    const routes = [{ route: 'GET /a/special' }, { route: 'GET /a/{x}' }, { route: 'POST /a/{x}' }];
    const strict = await start({ origins: [PAGE] }, { routes, strictSiblings: true });
    expect(corsOf(await preflight(strict, '/a/SPECIAL'))['allow-methods']).toBe('POST');
    await strict.stop();
  });
});

describe('every answer to an allowed origin has the fields of CORS', () => {
  let gateway: InProcess;
  beforeAll(async () => {
    const limits = { default: { allMethods: ['2/1h'] } };
    gateway = await start({ origins: [PAGE, 'http://localhost:3000'], exposedHeaders: ['etag'] }, { limits });
  });
  afterAll(() => gateway.stop());
  const fields = { ...ALLOWED, 'expose-headers': `${EXPOSED}, etag` };
  const ask = (method: string, path: string, headers: object = {}) =>
    gateway.ask(method, path, { origin: PAGE, ...headers });

  it('of the upstream, whose own are replaced', async () => {
    upstream.behave(
      answer({
        headers: {
          'Access-Control-Allow-Origin': '*',
          'access-control-allow-credentials': 'true',
          'access-control-max-age': '9',
          vary: 'accept-encoding',
          etag: '"1"',
        },
      }),
    );
    const reply = await ask('GET', '/files/a');
    expect(corsOf(reply)).toEqual(fields);
    expect(reply.headers).toMatchObject({ vary: 'accept-encoding, Origin', etag: '"1"' });
    const other = await ask('GET', '/files/a', { origin: OTHER });
    expect(corsOf(other)).toEqual({});
    expect(other.headers.vary).toBe('accept-encoding, Origin');
    const none = await ask('GET', '/files/a', { origin: undefined });
    expect(corsOf(none)).toEqual({});
    expect(none.headers.vary).toBe('accept-encoding, Origin');
  });

  it('of the gateway: errors and 429', async () => {
    const replies = [
      await ask('GET', '/files/a', NO_KEY),
      await ask('GET', '/nowhere'),
      await ask('GET', '/chats'),
      await ask('GET', '/%2e%2e/x'),
    ];
    expect(replies.map(({ status }) => status)).toEqual([401, 404, 422, 400]);
    for (let i = 0; i < 3; i++) replies.push(await ask('GET', '/chats?account_id=acc_1'));
    expect(replies.at(-1)?.status).toBe(429);
    for (const reply of replies) {
      expect(corsOf(reply)).toEqual(fields);
      expect(reply.headers.vary).toBe('Origin');
    }
  });

  it('of the gateway: an upstream that breaks the connection', async () => {
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.socket?.destroy();
    });
    const reply = await ask('DELETE', '/chats/7');
    expectProblem(reply, 503, 'errors/network_down');
    expect(corsOf(reply)).toEqual(fields);
  });

  it('a replay: for the origin of the retry, not that of the original', async () => {
    upstream.behave(answer({ headers: { 'access-control-allow-origin': 'https://upstream.example', vary: 'accept' } }));
    const headers = { 'idempotency-key': 'k-1', 'x-account-id': 'acc_2' };
    const post = (origin: string) => gateway.ask('POST', '/chats', { ...headers, origin }, { body: 'x' });
    const original = await post(PAGE);
    expect(corsOf(original)).toEqual(fields);
    for (const [origin, expected] of [
      ['http://localhost:3000', { ...fields, 'allow-origin': 'http://localhost:3000' }],
      [OTHER, {}],
    ] as const) {
      const replay = await post(origin);
      expect(replay.headers['idempotency-replayed']).toBe('true');
      expect(corsOf(replay)).toEqual(expected);
      expect(replay.headers.vary).toBe('accept, Origin');
    }
    expect(upstream.seen).toHaveLength(1);
  });

  it('with credentials the origin may also send cookies', async () => {
    const other = await start({ origins: [PAGE], credentials: true, maxAgeS: 0 });
    const reply = await preflight(other, '/chats');
    expect(corsOf(reply)).toMatchObject({ 'allow-origin': PAGE, 'allow-credentials': 'true', 'max-age': '0' });
    await other.stop();
  });

  it('with "*" every answer is the same for all origins', async () => {
    const open = await start({ origins: ['*'] });
    for (const origin of [PAGE, OTHER, 'null', undefined]) {
      const reply = await open.ask('GET', '/files/a', { origin });
      expect(corsOf(reply)).toEqual({ ...ALLOWED, 'allow-origin': '*' });
      expect(reply.headers.vary).toBeUndefined();
    }
    expect(corsOf(await preflight(open, '/chats'))).toMatchObject({ 'allow-origin': '*' });
    await open.stop();
  });
});

it('without cors the gateway knows nothing of it: a listed OPTIONS is forwarded, and fields pass as they are', async () => {
  const gateway = await start(undefined);
  upstream.behave(answer({ headers: { 'access-control-allow-origin': 'https://upstream.example' } }));
  const reply = await gateway.ask('OPTIONS', '/own', { origin: PAGE, 'access-control-request-method': 'GET' });
  expect(corsOf(reply)).toEqual({ 'allow-origin': 'https://upstream.example' });
  expect(reply.headers.vary).toBeUndefined();
  expectProblem(await preflight(gateway, '/chats'), 404, 'errors/resource_not_found');
  expect(upstream.last().headers.origin).toBe(PAGE);
  await gateway.stop();
});
