/** What one application can use at a time: running requests, and buffered bytes. Others are served meanwhile. */

import { eventually, openRaw, type RawConnection, type RawReply, rawRequest } from 'headgate-testbed/raw-http';
import { answer, breakBeforeAnswer, held, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { beforeEach, describe, expect, it } from 'vitest';
import { expectProblem, NO_RATES, ratesOf, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { BODY, freshKey, keyedConfig, MESSAGES, OPEN, OTHER_TOKEN, rawPost } from '../support/keyed.ts';

const MIB = 1_048_576;
let upstream: Upstream;

beforeEach(async () => {
  upstream = await startUpstream();
});

const start = (rest: Record<string, unknown>): Promise<InProcess> => startInProcess(keyedConfig(upstream.url, rest));

async function gauge(gateway: InProcess, name: string): Promise<number> {
  const [, value] = new RegExp(`^headgate_${name} (.*)$`, 'm').exec(await gateway.metrics()) ?? [];
  return Number(value);
}
const isIdle = async (gateway: InProcess): Promise<boolean> =>
  (await gauge(gateway, 'requests_running')) === 0 && (await gauge(gateway, 'buffered_bytes')) === 0;

const keyed = (gateway: InProcess, key: string, headers: Record<string, string> = {}, path = OPEN) =>
  gateway.ask('POST', path, { 'idempotency-key': key, 'content-type': 'application/json', ...headers }, { body: BODY });

/** Starts an upload of 2 MB that stops after `bytes`. */
async function stoppedUpload({ port }: InProcess, bytes: number): Promise<RawConnection> {
  const connection = await openRaw(port);
  connection.write(rawPost(freshKey(), OPEN, { 'content-length': '2000000' }, ''));
  connection.write(Buffer.alloc(bytes, 'x'));
  return connection;
}

describe('perApplication.maxRequests', () => {
  it('one request more gets 503 with retry-after: it is not charged, and its key is not claimed', async () => {
    const gateway = await start({ perApplication: { maxRequests: 3 } });
    const hold = held();
    upstream.behave(hold.behaviour);
    const key = freshKey();
    const running = [
      keyed(gateway, key),
      gateway.ask('POST', '/api/v1/plain?account_id=acc_1', {}, { body: 'x' }),
      gateway.ask('POST', '/api/v1/plain?account_id=acc_2', {}, { body: 'x' }),
    ];
    await eventually(() => hold.waiting() === 3, 'three at the upstream');
    const refusedKey = freshKey();
    for (const refused of [await keyed(gateway, refusedKey, {}, MESSAGES), await keyed(gateway, key)]) {
      expectProblem(refused, 503, 'errors/service_unavailable');
      expect(ratesOf(refused)).toEqual({ ...NO_RATES, retryAfter: 1 });
    }
    // Another application has its own places.
    const other = keyed(gateway, freshKey(), { 'x-api-key': OTHER_TOKEN });
    await eventually(() => hold.waiting() === 4, 'the request of the other application');
    hold.release();
    expect((await Promise.all([...running, other])).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const retried = await keyed(gateway, refusedKey, {}, MESSAGES);
    expect(retried.status).toBe(200);
    expect(retried.headers).not.toHaveProperty('idempotency-replayed');
    expect(retried.headers['x-ratelimit-remaining']).toBe('999');
  });

  it('I5: duplicates that wait for their original count as well', async () => {
    const gateway = await start({ perApplication: { maxRequests: 3 } });
    const hold = held();
    upstream.behave(hold.behaviour);
    const key = freshKey();
    const three = [keyed(gateway, key), keyed(gateway, key), keyed(gateway, key)];
    await eventually(() => hold.waiting() === 1, 'the original at the upstream');
    await eventually(async () => (await gauge(gateway, 'requests_running')) === 3, 'its duplicates');
    expect((await keyed(gateway, key)).status).toBe(503);
    hold.release();
    expect((await Promise.all(three)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(upstream.seen).toHaveLength(1);
  });

  it('I11: a request that goes on without its client counts until the upstream has answered', async () => {
    const gateway = await start({ perApplication: { maxRequests: 1 } });
    const hold = held();
    upstream.behave(hold.behaviour);
    const connection = await openRaw(gateway.port);
    connection.write(rawPost(freshKey()));
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    connection.destroy();
    await eventually(async () => (await gauge(gateway, 'requests_running')) === 0, 'the end of the connection');
    expect((await keyed(gateway, freshKey())).status).toBe(503);
    hold.release();
    await eventually(async () => (await keyed(gateway, freshKey())).status === 200, 'a free place');
  });
});

describe('uploads that stop', () => {
  it('use up only the share of their application; more get 503, and another application is served', async () => {
    const gateway = await start({ perApplication: { maxBufferedBytes: 20 * MIB }, maxBufferedBytes: 40 * MIB });
    const uploads = await Promise.all(Array.from({ length: 60 }, () => stoppedUpload(gateway, 1_000_000)));
    const refused = () => uploads.filter(({ replies }) => replies().length > 0);
    await eventually(() => refused().length >= 40, 'the refusals');
    const buffered = await gauge(gateway, 'buffered_bytes');
    expect(buffered).toBeGreaterThan(10 * MIB);
    expect(buffered).toBeLessThanOrEqual(20 * MIB);
    for (const { replies } of refused()) {
      const [reply] = replies() as [RawReply];
      expectProblem(reply, 503, 'errors/service_unavailable');
      expect(reply.headers['retry-after']).toBe('1');
    }
    const other = await keyed(gateway, freshKey(), { 'x-api-key': OTHER_TOKEN });
    expect(other.status).toBe(200);
    for (const { destroy } of uploads) destroy();
    await eventually(() => isIdle(gateway), 'the end of all');
    expect((await keyed(gateway, freshKey())).status).toBe(200);
    expect(upstream.seen).toHaveLength(2);
  });

  it('of several applications together cannot pass maxBufferedBytes', async () => {
    const gateway = await start({ perApplication: { maxBufferedBytes: MIB }, maxBufferedBytes: MIB });
    const upload = await stoppedUpload(gateway, 1_048_000);
    await eventually(async () => (await gauge(gateway, 'buffered_bytes')) >= 1_048_000, 'the upload');
    const large = { 'x-api-key': OTHER_TOKEN, 'idempotency-key': freshKey() };
    const refused = await gateway.ask('POST', OPEN, large, { body: 'x'.repeat(10_000) });
    expectProblem(refused, 503, 'errors/service_unavailable');
    upload.destroy();
    await eventually(() => isIdle(gateway), 'its end');
    expect((await gateway.ask('POST', OPEN, large, { body: 'x'.repeat(10_000) })).status).toBe(200);
  });

  it('a body past 64 KiB is in a file, which counts as at least 256 KiB: so the number of files is bounded too', async () => {
    const gateway = await start({});
    const small = await stoppedUpload(gateway, 65_536);
    await eventually(async () => (await gauge(gateway, 'buffered_bytes')) === 65_536, 'the body in memory');
    small.write('x');
    await eventually(async () => (await gauge(gateway, 'buffered_bytes')) === 262_144, 'the file');
    small.write(Buffer.alloc(262_144, 'x'));
    await eventually(async () => (await gauge(gateway, 'buffered_bytes')) === 327_681, 'more of the file');
    small.destroy();
    await eventually(() => isIdle(gateway), 'its end');
  });

  it('clientTimeoutMs without a byte: 408, and everything is freed', async () => {
    const gateway = await start({ clientTimeoutMs: 150 });
    const upload = await stoppedUpload(gateway, 1_000_000);
    await upload.closed;
    expectProblem(upload.replies()[0] as RawReply, 408, 'errors/request_timeout');
    await eventually(() => isIdle(gateway), 'its end');
    expect(upstream.seen).toHaveLength(0);
  });
});

describe('replays', () => {
  it('past the share of the application: 503, and the stored answer is not lost', async () => {
    const gateway = await start({ perApplication: { maxBufferedBytes: 3 * MIB } });
    upstream.behave(answer({ body: 'x'.repeat(MIB - 1_000) }));
    const key = freshKey();
    const original = await keyed(gateway, key);
    // The system takes some of the answers, and the gateway has to buffer the rest.
    const readers = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const connection = await openRaw(gateway.port);
        connection.socket.pause();
        connection.write(rawPost(key).repeat(8));
        return connection;
      }),
    );
    const refusals = /^headgate_requests_total\{route="POST \/api\/v1\/open",status="503"\}/m;
    await eventually(async () => (await gauge(gateway, 'buffered_bytes')) > 2 * MIB, 'answers that are not read');
    let [most, isRefused] = [0, false];
    await eventually(async () => {
      most = Math.max(most, await gauge(gateway, 'buffered_bytes'));
      isRefused ||= (await keyed(gateway, key)).status === 503 || refusals.test(await gateway.metrics());
      return isRefused;
    }, 'a refusal');
    expect(most).toBeLessThanOrEqual(3 * MIB);
    for (const { destroy } of readers) destroy();
    await eventually(() => isIdle(gateway), 'the end of all');
    expect((await keyed(gateway, key)).text).toBe(original.text);
    expect(upstream.seen).toHaveLength(1);
  });
});

it('an answer for whose recording there is no room reaches its client, and is stored without its body (I7)', async () => {
  const gateway = await start({ perApplication: { maxBufferedBytes: 200_000 } });
  const large = 'x'.repeat(300_000);
  upstream.behave(answer({ body: large }));
  const key = freshKey();
  expect((await keyed(gateway, key)).text).toBe(large);
  expectProblem(await keyed(gateway, key), 409, 'errors/already_used');
  await eventually(() => isIdle(gateway), 'its end');
  upstream.behave(answer({ body: 'small' }));
  const other = freshKey();
  await keyed(gateway, other);
  expect((await keyed(gateway, other)).headers['idempotency-replayed']).toBe('true');
});

describe('after a storm of requests of every kind', () => {
  const MAX_REQUESTS = 12;

  it('nothing is counted as running or buffered, and all places are free', async () => {
    const gateway = await start({
      clientTimeoutMs: 300,
      upstreamTimeoutMs: 400,
      idempotency: { lateAnswerMs: 200, waitMs: 300 },
      maxBodyBytes: 3 * MIB,
      maxBufferedBytes: 6 * MIB,
      perApplication: { maxRequests: MAX_REQUESTS, maxBufferedBytes: 5 * MIB },
    });
    let turn = 0;
    const ends = [
      answer(),
      answer({ body: 'y'.repeat(700_000) }),
      answer({ status: 429 }),
      breakBeforeAnswer,
      answer({ delayMs: 600 }),
      answer({ delayMs: 30 }),
    ];
    upstream.behave((seen, response, request) => ends[turn++ % ends.length]?.(seen, response, request));
    const shared = freshKey();
    const raw = async (bytes: string | Buffer, afterMs: number | undefined): Promise<void> => {
      const connection = await openRaw(gateway.port);
      connection.write(bytes);
      if (afterMs === undefined) await connection.closed;
      else await eventually(() => connection.received() !== '', 'an answer', afterMs).catch(() => {});
      connection.destroy();
    };
    const kinds: (() => Promise<unknown>)[] = [
      () => keyed(gateway, freshKey()),
      () => keyed(gateway, shared),
      () => gateway.ask('POST', OPEN, { 'idempotency-key': freshKey() }, { body: 'x'.repeat(500_000) }),
      () => gateway.ask('POST', '/api/v1/plain?account_id=acc_1', {}, { body: 'x'.repeat(100_000) }),
      // Refused: too long, malformed, an unknown account, no such route.
      () => raw(rawPost(freshKey(), OPEN, { 'content-length': String(9 * MIB) }, ''), 500),
      () => gateway.ask('POST', '/api/v1/emails', { 'content-type': 'application/json' }, { body: '{"a":' }),
      () => keyed(gateway, freshKey(), {}, '/api/v1/messages?account_id=nobody'),
      () => raw(`${rawRequest('POST', OPEN, { 'x-api-key': TOKEN, 'transfer-encoding': 'chunked' })}zz\r\n`, undefined),
      // The client stops, or goes away at once or later.
      () => raw(rawPost(freshKey(), OPEN, { 'content-length': '900000' }, 'x'), undefined),
      () =>
        raw(
          Buffer.concat([
            Buffer.from(rawPost(freshKey(), OPEN, { 'content-length': '900000' }, '')),
            Buffer.alloc(400_000),
          ]),
          20,
        ),
      () => raw(rawPost(freshKey()), 0),
      () => raw(rawPost(freshKey(), OPEN, {}, 'x'.repeat(300_000)), 10),
      () => raw(rawPost(shared).repeat(20), 20),
      () => raw(rawPost(freshKey()).repeat(9), 400),
      () => raw(rawPost(freshKey(), OPEN, { expect: '100-continue', 'content-length': '70000' }, ''), 30),
    ];
    let seed = 13;
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let round = 0; round < 12; round++) {
      await Promise.allSettled(Array.from({ length: 30 }, () => kinds[random(kinds.length)]?.()));
    }
    await eventually(() => isIdle(gateway), 'the end of all', 20_000);
    await eventually(
      async () => (await gauge(gateway, 'idempotency_in_flight')) === 0,
      'the end of all claims',
      20_000,
    );
    const hold = held();
    upstream.behave(hold.behaviour);
    // The upstream may still have forgotten requests of the storm, which hold their places until they time out.
    const all = Array.from({ length: MAX_REQUESTS }, () => gateway.ask('POST', OPEN, {}, { body: 'x' }));
    await eventually(() => hold.waiting() === MAX_REQUESTS, 'all places');
    expect((await gateway.ask('POST', OPEN, {}, { body: 'x' })).status).toBe(503);
    hold.release();
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual(all.map(() => 200));
    await eventually(() => isIdle(gateway), 'the end');
  });
});
