/** I4: a replay is the original's status, headers and body, byte for byte, and nothing about the current moment. */
import { gzipSync } from 'node:zlib';
import { answer } from 'headgate-testbed/upstream';
import { describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem, ratesOf, startGateway } from '../support/gateway.ts';
import {
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  lasting,
  MESSAGES,
  OPEN,
  post,
} from '../support/keyed.ts';

const { upstream, gateway } = await gatewayForFile(keyedConfig);

async function originalAndReplay(mail = {}) {
  const key = freshKey();
  const original = await post(gateway, key, mail);
  // A new answer of the upstream must not reach any client.
  upstream.behave(answer({ status: 418, body: 'again?' }));
  const replay = await post(gateway, key, mail);
  expect(callsOf(upstream, key)).toHaveLength(1);
  return { original, replay };
}

const everyByte = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 256));

describe('I4: byte for byte', () => {
  it.each([
    [201, { 'content-type': 'application/json', 'x-own': 'yes' }, '{"object":"EmailSent"}'],
    [200, { 'content-type': 'application/octet-stream' }, everyByte],
    [200, { 'content-type': 'text/plain; charset=iso-8859-1' }, Buffer.from('caf\u00e9', 'latin1')],
    [200, { 'content-encoding': 'gzip', 'content-type': 'application/json' }, gzipSync('{"zipped":true}')],
    [200, { 'content-type': 'text/plain' }, '\ufeffwith a mark, and "quotes" \u2028 \ud83d\udd11'],
    [200, {}, ''],
    [204, { 'x-own': 'nothing' }, ''],
    [304, { etag: '"1"' }, ''],
    [302, { location: '/elsewhere' }, 'moved'],
    [400, { 'content-type': 'text/plain' }, 'bad'],
    [404, { 'content-type': 'text/html' }, '<p>gone</p>'],
    [422, { 'content-type': 'application/problem+json' }, '{"theirs":true}'],
    [500, { 'content-type': 'application/json' }, '{"theirs":true}'],
    [599, {}, 'odd'],
  ])('%i %j', async (status, headers, body) => {
    upstream.behave(answer({ status, headers, body }));
    const { original, replay } = await originalAndReplay();
    expectOriginal(original, status);
    expect(original.body.equals(Buffer.from(body))).toBe(true);
    expectReplay(replay, original);
  });

  it('fields that come twice, in their order', async () => {
    const headers = { link: ['</1>; rel=a', '</2>; rel=b'], 'x-multi': ['2', '1', '1'], 'x-Case': 'Kept, "as is"' };
    upstream.behave(answer({ headers, body: 'x' }));
    const { original, replay } = await originalAndReplay();
    expect(lasting(original)).toEqual(
      expect.arrayContaining([
        ['link', '</1>; rel=a'],
        ['link', '</2>; rel=b'],
        ['x-multi', '2'],
        ['x-case', 'Kept, "as is"'],
      ]),
    );
    expectReplay(replay, original);
    expect(replay.headers['x-multi']).toBe('2, 1, 1');
  });

  it('names that every object has, and bytes beyond ASCII', async () => {
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.writeHead(200, [
        '__proto__',
        'a',
        'constructor',
        'b',
        'x-latin',
        'caf\u00e9',
        'X-Twice',
        '1',
        'x-twice',
        '2',
      ]);
      response.end('x');
    });
    const { original, replay } = await originalAndReplay();
    expect(lasting(original)).toEqual(
      expect.arrayContaining([
        ['__proto__', 'a'],
        ['constructor', 'b'],
        ['x-latin', 'caf\u00e9'],
      ]),
    );
    expectReplay(replay, original);
  });

  it('fields of the connection to the upstream are neither shown nor stored', async () => {
    const headers = {
      connection: 'x-private, keep-alive',
      'x-private': 'p',
      'proxy-authenticate': 'Basic',
      'x-own': 'y',
    };
    upstream.behave(answer({ headers, body: 'x' }));
    const { original, replay } = await originalAndReplay();
    for (const reply of [original, replay]) {
      expect(reply.headers).toMatchObject({ 'x-own': 'y' });
      expect(reply.headers['x-private']).toBeUndefined();
      expect(reply.headers['proxy-authenticate']).toBeUndefined();
    }
    expectReplay(replay, original);
  });

  it('early hints (103) are not stored as the answer', async () => {
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.writeEarlyHints({ link: '</a.css>; rel=preload' });
      response.end('the answer');
    });
    const { original, replay } = await originalAndReplay();
    expect(original).toMatchObject({ status: 200, text: 'the answer' });
    expectReplay(replay, original);
  });

  it('chunked by the upstream: the same bytes', async () => {
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.writeHead(200, { 'content-type': 'text/plain', trailer: 'x-sum' });
      response.write('one ');
      response.addTrailers({ 'x-sum': '7' });
      response.end('two');
    });
    const { original, replay } = await originalAndReplay();
    expect(replay.text).toBe('one two');
    expectReplay(replay, original);
  });

  it('HEAD: no body, and no wrong length', async () => {
    upstream.behave(answer({ headers: { 'content-length': '42', 'x-own': 'head' }, body: '' }));
    const { original, replay } = await originalAndReplay({ method: 'HEAD', path: MESSAGES, body: '' });
    expectOriginal(original);
    expectReplay(replay, original);
    expect([undefined, original.headers['content-length']]).toContain(replay.headers['content-length']);
  });

  it('as large as may be stored', async () => {
    const body = Buffer.alloc(1_048_576, everyByte);
    upstream.behave(answer({ headers: {}, body }));
    const { original, replay } = await originalAndReplay();
    expect(original.body.equals(body)).toBe(true);
    expectReplay(replay, original);
  });

  it('any number of times', async () => {
    const key = freshKey();
    const original = await post(gateway, key);
    for (let i = 0; i < 5; i += 1) expectReplay(await post(gateway, key), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});

describe('I4: nothing about the current moment', () => {
  const theirs = {
    'set-cookie': ['session=secret', 'b=2'],
    date: 'Thu, 01 Jan 2015 00:00:00 GMT',
    'x-ratelimit-limit': '5',
    'x-ratelimit-remaining': '4',
    'x-ratelimit-reset': '3',
    'retry-after': '7',
    'keep-alive': 'timeout=77',
    'x-request-id': 'theirs',
    'idempotency-replayed': 'true',
    'idempotency-status': 'bypassed',
    'x-own': 'stays',
  };

  it('the original has these fields, and no replay has them', async () => {
    upstream.behave(answer({ status: 503, headers: theirs, body: 'later' }));
    const { original, replay } = await originalAndReplay();
    expectOriginal(original, 503);
    expect(original.headers['set-cookie']).toEqual(theirs['set-cookie']);
    expect(original.headers['retry-after']).toBe('7');
    expectReplay(replay, original);
    expect(replay.headers['x-own']).toBe('stays');
    expect(replay.headers.date).not.toBe(theirs.date);
    expect(replay.headers['keep-alive']).not.toBe('timeout=77');
  });

  it("the upstream's own Idempotency-Replayed and Idempotency-Status are never shown", async () => {
    upstream.behave(answer({ headers: theirs }));
    const { original, replay } = await originalAndReplay();
    expect(original.headers['idempotency-replayed']).toBeUndefined();
    expect(original.headers['idempotency-status']).toBeUndefined();
    expect(replay.headers['idempotency-status']).toBeUndefined();
    expect(replay.rawHeaders.filter((name) => name.toLowerCase() === 'idempotency-replayed')).toHaveLength(1);
  });

  it('every answer has its own request id', async () => {
    const { original, replay } = await originalAndReplay();
    expect(replay.headers['x-request-id']).toMatch(/./);
    expect(replay.headers['x-request-id']).not.toBe(original.headers['x-request-id']);
  });

  it('a client that sends the marker itself changes nothing', async () => {
    const key = freshKey();
    const headers = { 'idempotency-replayed': 'true', 'idempotency-status': 'bypassed' };
    const original = await post(gateway, key, { headers });
    expectOriginal(original);
    expect(original.headers['idempotency-status']).toBeUndefined();
    expectReplay(await post(gateway, key), original);
  });
});

describe('I4: a replay is not charged', () => {
  const path = '/api/v1/messages?account_id=acc_5';

  it('the account is charged once, not per replay', async () => {
    const key = freshKey();
    const original = await post(gateway, key, { path });
    expect(ratesOf(original)).toMatchObject({ limit: 1000, remaining: 999 });
    for (let i = 0; i < 3; i += 1) expectReplay(await post(gateway, key, { path }), original);
    expect(ratesOf(await post(gateway, freshKey(), { path })).remaining).toBe(998);
  });

  it('a replay is sent even if the allowance is used up', async () => {
    const limits = { default: { allMethods: ['1/1h'] } };
    const narrow = await startGateway(keyedConfig(upstream.url, { limits }));
    const key = freshKey();
    const original = await post(narrow, key, { path });
    expectProblem(await post(narrow, freshKey(), { path }), 429, 'api/too_many_requests');
    expectReplay(await post(narrow, key, { path }), original);
    await narrow.stop();
  });
});

it('I8: after its retention a key is free again', async () => {
  const brief = await startGateway(keyedConfig(upstream.url, { idempotency: { retentionMs: 1_000, leaseMs: 500 } }));
  const key = freshKey();
  expectOriginal(await post(brief, key));
  const began = performance.now();
  let replies = 0;
  while (performance.now() - began < 15_000) {
    const reply = await post(brief, key, { path: OPEN });
    if (reply.headers['idempotency-replayed'] === undefined) break;
    replies += 1;
  }
  expect(replies).toBeGreaterThan(0);
  expect(performance.now() - began).toBeGreaterThan(500);
  expect(callsOf(upstream, key)).toHaveLength(2);
  await brief.stop();
});
