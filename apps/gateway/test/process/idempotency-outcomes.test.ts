/** I6 and I7: which outcomes are stored, and which release the key. */

import { eventually, openRaw, pause } from 'headgate-testbed/raw-http';
import { answer, breakBeforeAnswer, breakMidAnswer, startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem, freePort, NO_RATES, ratesOf, startGateway } from '../support/gateway.ts';
import {
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  MESSAGES,
  OPEN,
  post,
  rawPost,
} from '../support/keyed.ts';

const SMALL = '/api/v1/small';

const { upstream, gateway } = await gatewayForFile(keyedConfig, { limits: { default: { allMethods: ['20/1h'] } } });

const of = (account: string) => `/api/v1/messages?account_id=${account}`;

describe('I6: stored, once the operation began', () => {
  it.each([500, 502, 503, 504, 404, 422, 409, 401])(
    "the upstream's own %i: replayed, never run again",
    async (status) => {
      const key = freshKey();
      upstream.behave(answer({ status, body: `{"theirs":${status}}` }));
      const original = await post(gateway, key);
      expectOriginal(original, status);
      upstream.behave(answer());
      expectReplay(await post(gateway, key), original);
      expect(callsOf(upstream, key)).toHaveLength(1);
    },
  );

  it('an upstream that breaks after it got the request: 503 errors/network_down, stored', async () => {
    const key = freshKey();
    upstream.behave(breakBeforeAnswer);
    const original = await post(gateway, key, { path: MESSAGES });
    expectProblem(original, 503, 'errors/network_down');
    expectOriginal(original, 503);
    upstream.behave(answer());
    const replay = await post(gateway, key, { path: MESSAGES });
    expect(replay).toMatchObject({ status: 503, text: original.text });
    expect(replay.headers['idempotency-replayed']).toBe('true');
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it.each([
    ['with a length', { 'content-length': '100' }],
    ['chunked', {}],
  ])('in mid-answer, %s: the answer breaks off; a retry is 409 errors/already_used (I7)', async (_title, headers) => {
    const key = freshKey();
    upstream.behave(breakMidAnswer(headers, 'begun'));
    const original = await post(gateway, key);
    expect(original).toMatchObject({ status: 200, broken: true });
    upstream.behave(answer());
    const { detail } = expectProblem(await post(gateway, key), 409, 'errors/already_used');
    expect(detail).toMatch(/200/);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});

describe('I6: released, if nothing began', () => {
  it('our own 429: the same key works after retry-after', async () => {
    const limits = { default: { allMethods: ['1/3s'] } };
    const narrow = await startGateway(keyedConfig(upstream.url, { limits }));
    expectOriginal(await post(narrow, freshKey(), { path: MESSAGES }));
    const key = freshKey();
    const rejected = await post(narrow, key, { path: MESSAGES });
    expectProblem(rejected, 429, 'api/too_many_requests');
    expect(callsOf(upstream, key)).toHaveLength(0);
    // The fingerprint stays stored (I6), so that another request cannot take the key in between.
    expectProblem(await post(narrow, key, { path: MESSAGES, body: '{}' }), 409, 'errors/already_used');
    await pause(Number(rejected.headers['retry-after']) * 1_000);
    const original = await post(narrow, key, { path: MESSAGES });
    expectOriginal(original);
    expectReplay(await post(narrow, key, { path: MESSAGES }), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
    await narrow.stop();
  });

  it.each([
    ['404, an unknown account', of('nobody'), {}, 404],
    ['422, no account', '/api/v1/messages', {}, 422],
    ['401, no key', MESSAGES, { 'x-api-key': undefined }, 401],
    ['403, outside its scope', MESSAGES, { 'x-api-key': 'scoped' }, 403],
  ])('our own %s: the key is free for any request', async (_title, path, headers, status) => {
    const key = freshKey();
    for (let i = 0; i < 2; i += 1) expectOriginal(await post(gateway, key, { path, headers }), status);
    expectOriginal(await post(gateway, key, { body: '{"quite":"another"}' }));
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('an upstream that refuses the connection: 503, refunded; the same key works when the upstream is back', async () => {
    const port = await freePort();
    const down = await startGateway(keyedConfig(`http://127.0.0.1:${port}`));
    const key = freshKey();
    for (let i = 0; i < 3; i += 1) {
      const reply = await post(down, key, { path: MESSAGES });
      expectProblem(reply, 503, 'errors/network_down');
      expectOriginal(reply, 503);
      expect(ratesOf(reply)).toEqual(NO_RATES);
    }
    const up = await startUpstream(answer(), port);
    const original = await post(down, key, { path: MESSAGES });
    expectOriginal(original);
    expect(ratesOf(original)).toMatchObject({ limit: 1000, remaining: 999 });
    expectReplay(await post(down, key, { path: MESSAGES }), original);
    expect(callsOf(up, key)).toHaveLength(1);
    await down.stop();
  });

  it('the provider’s own 429: the provider did not execute it, and a retry asks it again', async () => {
    const key = freshKey();
    const path = of('acc_4');
    upstream.behave(answer({ status: 429, headers: { 'retry-after': '30', 'x-ratelimit-limit': '1' } }));
    const rejected = await post(gateway, key, { path });
    expectProblem(rejected, 429, 'provider/too_many_requests');
    expect(ratesOf(rejected)).toEqual({ ...NO_RATES, retryAfter: 30 });
    expectProblem(await post(gateway, key, { path, body: '{}' }), 409, 'errors/already_used');
    upstream.behave(answer());
    const original = await post(gateway, key, { path });
    expectOriginal(original);
    // The request was forwarded, so it stays charged (S16).
    expect(ratesOf(original)).toMatchObject({ limit: 20, remaining: 18 });
    expectReplay(await post(gateway, key, { path }), original);
    expect(callsOf(upstream, key)).toHaveLength(2);
  });
});

describe('I7: an answer over maxKeptBytes', () => {
  const body = Buffer.alloc(1_001, 'x');

  it('reaches the client whole; a retry is 409 errors/already_used with its status', async () => {
    const key = freshKey();
    upstream.behave(answer({ status: 201, headers: { 'x-own': 'yes' }, body }));
    const original = await post(gateway, key, { path: SMALL });
    expectOriginal(original, 201);
    expect(original.body.equals(body)).toBe(true);
    for (let i = 0; i < 2; i += 1) {
      const refused = await post(gateway, key, { path: SMALL });
      const { detail } = expectProblem(refused, 409, 'errors/already_used');
      expect(detail).toMatch(/201/);
      expect(refused.headers['idempotency-replayed']).toBeUndefined();
    }
    expectProblem(await post(gateway, key, { path: SMALL, body: '{}' }), 409, 'errors/already_used');
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('one byte less is stored', async () => {
    const key = freshKey();
    upstream.behave(answer({ headers: {}, body: body.subarray(1) }));
    const original = await post(gateway, key, { path: SMALL });
    expectReplay(await post(gateway, key, { path: SMALL }), original);
  });

  it('streams: bytes reach the client before the upstream’s end', async () => {
    const key = freshKey();
    let end: () => void = () => {};
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.writeHead(200, { 'content-type': 'text/plain' });
      response.write(Buffer.alloc(200_000, 'y'));
      end = () => response.end('last');
    });
    const connection = await openRaw(gateway.port);
    connection.write(rawPost(key, SMALL));
    await eventually(() => connection.received().length > 100_000, 'the first bytes');
    expect(connection.received()).not.toContain('last');
    end();
    const [reply] = await connection.waitFor(1);
    connection.destroy();
    expect(reply?.text).toMatch(/^y{200000}last$/);
    const { detail } = expectProblem(await post(gateway, key, { path: SMALL }), 409, 'errors/already_used');
    expect(detail).toMatch(/200/);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('if another outcome might win, nothing is sent before that is settled, and then everything', async () => {
    const path = '/api/v1/again';
    const key = freshKey();
    const large = Buffer.alloc(5_000_000, 'w');
    upstream.behave(answer({ status: 201, headers: {}, body: large }));
    const original = await post(gateway, key, { path });
    expectOriginal(original, 201);
    expect(original.body.equals(large)).toBe(true);
    const { detail } = expectProblem(await post(gateway, key, { path }), 409, 'errors/already_used');
    expect(detail).toMatch(/201/);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it.each([20 * 1_048_576, 1_048_577])('%i bytes come whole, and the default bound is 1 MiB', async (length) => {
    const key = freshKey();
    const large = Buffer.alloc(length, 'z');
    upstream.behave(answer({ headers: {}, body: large }));
    const original = await post(gateway, key, { path: OPEN });
    expect(original.body.equals(large)).toBe(true);
    expectProblem(await post(gateway, key, { path: OPEN }), 409, 'errors/already_used');
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});
