/**
 * A client that sends many requests before it reads an answer: four of them run, and the others cost next to nothing.
 */

import { eventually, openRaw, pause, rawRequest } from 'headgate-testbed/raw-http';
import { listensWithTls } from 'headgate-testbed/tls-listener';
import { answer, held, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';
import { BODY, freshKey, keyedConfig, OPEN, rawPost } from '../support/keyed.ts';

const MIB = 1_048_576;
let upstream: Upstream;
let gateway: InProcess;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startInProcess(keyedConfig(upstream.url, { clientTimeoutMs: 400 }));
});
afterAll(() => gateway.stop());
beforeEach(() => {
  upstream.seen.length = 0;
  upstream.behave(answer());
});

/** A request without an idempotency key. */
const plain = (index: number, body = 'x'): string =>
  rawRequest('POST', `/api/v1/open?n=${index}`, { 'x-api-key': TOKEN }, body);

async function gauge(name: string): Promise<number> {
  const [, value] = new RegExp(`^headgate_${name} (.*)$`, 'm').exec(await gateway.metrics()) ?? [];
  return Number(value);
}
const replays = () => gauge('idempotency_claims_total{outcome="replayed"}').then((count) => count || 0);
const isIdle = async () => (await gauge('requests_running')) === 0 && (await gauge('buffered_bytes')) === 0;

it('at most four requests of a connection run at a time, and their answers are in order', async () => {
  const hold = held(async (seen, response, request) => answer({ body: seen.url })(seen, response, request));
  upstream.behave(hold.behaviour);
  const connection = await openRaw(gateway.port);
  connection.write(Array.from({ length: 40 }, (_, i) => plain(i)).join(''));
  await eventually(() => hold.waiting() === 4, 'four at the upstream');
  await eventually(async () => (await gauge('requests_running')) === 40, 'the others to wait');
  // Requests of other connections are not behind them.
  const other = gateway.ask('POST', '/api/v1/open?n=other');
  await eventually(() => hold.waiting() === 5, 'that of another connection');
  expect(upstream.seen).toHaveLength(5);
  hold.release();
  const replies = await connection.waitFor(40);
  expect(replies.map(({ text }) => text)).toEqual(Array.from({ length: 40 }, (_, i) => `/api/v1/open?n=${i}`));
  expect((await other).status).toBe(200);
  connection.destroy();
});

it('bodies of requests that waited arrive whole, also those that are longer than what was read ahead', async () => {
  const bodies = Array.from({ length: 12 }, (_, i) => String.fromCharCode(97 + i).repeat(i % 3 === 0 ? 200_000 : 10));
  upstream.behave(async (seen, response) => {
    await seen.whole;
    response.end(seen.sha256());
  });
  const connection = await openRaw(gateway.port);
  connection.write(bodies.map((body, i) => plain(i, body)).join(''));
  const replies = await connection.waitFor(12);
  expect(replies.map(({ status }) => status)).toEqual(bodies.map(() => 200));
  const received = upstream.seen.map((seen) => [seen.url, seen.body().toString()]);
  expect(received.toSorted()).toEqual(bodies.map((body, i) => [`/api/v1/open?n=${i}`, body]).toSorted());
  connection.destroy();
});

it('requests whose client has gone before their turn do not run', async () => {
  const hold = held();
  upstream.behave(hold.behaviour);
  const connection = await openRaw(gateway.port);
  connection.write(Array.from({ length: 4 }, (_, i) => plain(i)).join(''));
  await eventually(() => hold.waiting() === 4, 'four at the upstream');
  connection.write(Array.from({ length: 20 }, (_, i) => plain(i)).join(''));
  await eventually(async () => (await gauge('requests_running')) === 24, 'the others to wait');
  connection.destroy();
  hold.release();
  await eventually(isIdle, 'their end');
  // Some answers may be sent before the gateway notices.
  expect(upstream.seen.length).toBeLessThan(24);
});

// Over TLS the gateway stops reading after each record, so fewer requests wait.
it.skipIf(listensWithTls())('a connection with hundreds of waiting requests is cut', async () => {
  const hold = held();
  upstream.behave(hold.behaviour);
  const connection = await openRaw(gateway.port);
  connection.write('POST /api/v1/open HTTP/1.1\r\nhost: a\r\nx-api-key: '.concat(TOKEN, '\r\n\r\n').repeat(300));
  await connection.closed;
  hold.release();
  await eventually(isIdle, 'their end');
  expect(upstream.seen.length).toBeLessThanOrEqual(4);
  expect((await gateway.ask('POST', '/api/v1/open')).status).toBe(200);
});

it('on all connections together, requests wait up to a bound', async () => {
  const hold = held();
  upstream.behave(hold.behaviour);
  // With TLS the gateway reads no more than one record ahead, which has about 140 of these requests.
  const connections = await Promise.all(Array.from({ length: 140 }, () => openRaw(gateway.port)));
  let closed = 0;
  for (const connection of connections) {
    void connection.closed.then(() => closed++);
    connection.write(plain(0).repeat(250));
  }
  await eventually(() => closed > 0, 'a connection that is cut', 20_000);
  // The requests of a connection that is cut end a moment later.
  await eventually(
    async () => (await gauge('requests_running')) <= 16_384 + 4 * connections.length,
    'the end of its requests',
  );
  for (const { destroy } of connections) destroy();
  hold.release();
  await eventually(isIdle, 'their end', 20_000);
});

describe('replays of an answer of 1 MB to a client that does not read', () => {
  /** Sends 200 retries of one request, 50 KB in all, on a connection that is never read. */
  async function attack(key: string) {
    const connection = await openRaw(gateway.port);
    connection.socket.pause();
    connection.write(rawPost(key).repeat(200));
    return connection;
  }
  const storeOriginal = async (key: string) => {
    upstream.behave(answer({ body: 'x'.repeat(MIB - 1_000) }));
    const headers = { 'idempotency-key': key, 'content-type': 'application/json' };
    expect((await gateway.ask('POST', OPEN, headers, { body: BODY })).status).toBe(200);
    await eventually(isIdle, 'the end of the original');
  };

  it('only what the client and its system take is read from the store, and at most four answers are in memory', async () => {
    const key = freshKey();
    await storeOriginal(key);
    const before = await replays();
    const connection = await attack(key);
    let most = 0;
    let count = -1;
    // Until no further answer was read for a while.
    while (count !== (await replays()) - before) {
      count = (await replays()) - before;
      for (let i = 0; i < 10; i++) {
        most = Math.max(most, await gauge('buffered_bytes'));
        await pause(5);
      }
    }
    expect(count).toBeGreaterThan(0);
    // The system's own buffers for one connection are some megabytes.
    expect(count).toBeLessThan(40);
    expect(most).toBeLessThanOrEqual(4 * MIB + 1_000);
    // The client still does not read, so the connection is cut, and everything is freed.
    await eventually(isIdle, 'its end');
    expect((await replays()) - before).toBeLessThan(40);
    connection.destroy();
  });

  it('a client that does read gets all of them', async () => {
    const key = freshKey();
    await storeOriginal(key);
    const before = await replays();
    const { socket } = await attack(key);
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    socket.resume();
    await eventually(() => bytes > 200 * (MIB - 1_000), 'all answers', 25_000);
    expect((await replays()) - before).toBe(200);
    socket.destroy();
  });
});
