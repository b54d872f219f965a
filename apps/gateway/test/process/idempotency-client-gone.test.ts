/**
 * I11: a client that leaves does not cancel the operation's bookkeeping. A process that gets SIGTERM stores outcomes
 * first.
 */
import { createHash } from 'node:crypto';
import { eventually, openRaw, type Reply } from 'headgate-testbed/raw-http';
import { answer, held } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gatewayForFile } from '../support/for-file.ts';
import { expectProblem, type Gateway, startGateway } from '../support/gateway.ts';
import {
  BODY,
  callsOf,
  expectOriginal,
  expectReplay,
  freshKey,
  keyedConfig,
  MESSAGES,
  OPEN,
  post,
  rawPost,
  reached,
} from '../support/keyed.ts';
import { type StoreServer, startStoreServer } from '../support/store-server.ts';

/** More bytes than fit into all the buffers between two sockets. */
const LARGE = 12_000_000;
const AGAIN = '/api/v1/again';
/** Its answers are stored up to LARGE. */
const ROOMY = '/api/v1/large';

const { upstream, gateway } = await gatewayForFile((upstream) => {
  const config = keyedConfig(upstream);
  const large = { route: `POST ${ROOMY}`, idempotent: { maxKeptBytes: LARGE } };
  return { ...config, routes: [...(config.routes as object[]), large] };
});

function expectKept(reply: Reply, body: string) {
  expect({ status: reply.status, text: brief(reply.text) }).toEqual({ status: 201, text: brief(body) });
  expect(reply.headers['idempotency-replayed']).toBe('true');
}

/** Keeps a failing test from printing a megabyte. */
const brief = (text: string) =>
  text.length < 1_000 ? text : `${text.length} characters, SHA-256 ${createHash('sha256').update(text).digest('hex')}`;

describe('I11: the client leaves', () => {
  it.each([OPEN, MESSAGES, AGAIN])(
    'before the head: the outcome is stored, and a retry replays it: %s',
    async (path) => {
      const key = freshKey();
      const hold = held(answer({ status: 201, body: 'unheard' }));
      upstream.behave(hold.behaviour);
      const client = await openRaw(gateway.port);
      client.write(rawPost(key, path));
      await reached(upstream, key);
      client.destroy();
      await client.closed;
      hold.release();
      const [call] = callsOf(upstream, key);
      expect(await call?.over).toBe(true);
      // On a route that does not wait, the outcome may come a moment later.
      const retry = await eventually(async () => {
        const reply = await post(gateway, key, { path });
        return reply.status !== 409 && reply;
      }, 'the outcome');
      expectKept(retry, 'unheard');
      expect(callsOf(upstream, key)).toHaveLength(1);
    },
  );

  it.each([
    ['in a small answer', 'first', 'last'],
    ['in one that fills every buffer on the way', 'f'.repeat(400_000), 'l'.repeat(600_000)],
  ])('after the head, %s', async (_title, first, last) => {
    const key = freshKey();
    let end: (() => void) | undefined;
    upstream.behave(async (seen, response) => {
      await seen.whole;
      response.writeHead(201, { 'content-type': 'text/plain' });
      response.write(first);
      end = () => response.end(last);
    });
    const client = await openRaw(gateway.port);
    // The client does not read, so that only its departure makes room.
    client.socket.pause();
    client.write(rawPost(key, ROOMY));
    await reached(upstream, key);
    await eventually(() => end !== undefined, 'the head');
    client.destroy();
    end?.();
    expectKept(await post(gateway, key, { path: ROOMY }), first + last);
    const [call] = callsOf(upstream, key);
    expect(await call?.over).toBe(true);
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('a client that does not read does not delay the outcome for others', async () => {
    const key = freshKey();
    const body = 's'.repeat(LARGE);
    upstream.behave(answer({ status: 201, headers: {}, body }));
    const slow = await openRaw(gateway.port);
    slow.socket.pause();
    slow.write(rawPost(key, '/api/v1/large'));
    await reached(upstream, key);
    expectKept(await post(gateway, key, { path: '/api/v1/large' }), body);
    slow.socket.resume();
    expect((await slow.waitFor(1))[0]?.text).toHaveLength(body.length);
    slow.destroy();
  });

  it('nor does one that leaves in the middle of an answer that is too large to store (I7)', async () => {
    const key = freshKey();
    upstream.behave(answer({ status: 201, headers: {}, body: 's'.repeat(LARGE) }));
    const slow = await openRaw(gateway.port);
    slow.socket.pause();
    slow.write(rawPost(key));
    await reached(upstream, key);
    const { detail } = expectProblem(await post(gateway, key), 409, 'errors/already_used');
    expect(detail).toMatch(/201/);
    slow.destroy();
    const [call] = callsOf(upstream, key);
    await call?.over;
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});

describe('an upload that stops', () => {
  it.each([
    ['with a length', { 'content-length': '1000' }, '{"half":'],
    ['chunked', { 'transfer-encoding': 'chunked' }, '8\r\n{"half":\r\n'],
  ])('%s: leaves no claim, and nothing is forwarded', async (_title, headers, part) => {
    const key = freshKey();
    const client = await openRaw(gateway.port);
    client.write(rawPost(key, OPEN, headers, '') + part);
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.destroy();
    // If it had claimed the key, another request with this key would be refused.
    expectOriginal(await post(gateway, key, { body: '{"another":1}' }));
    expect(callsOf(upstream, key)).toHaveLength(1);
  });

  it('a slow upload claims nothing until it is complete', async () => {
    const key = freshKey();
    const client = await openRaw(gateway.port);
    client.write(rawPost(key, OPEN, { 'content-length': String(BODY.length) }, '') + BODY.slice(0, 10));
    const original = await post(gateway, key);
    expectOriginal(original);
    client.write(BODY.slice(10));
    const [reply] = await client.waitFor(1);
    client.destroy();
    expect(reply?.headers['idempotency-replayed']).toBe('true');
    expect(callsOf(upstream, key)).toHaveLength(1);
  });
});

describe('SIGTERM', () => {
  let server: StoreServer;
  const config = (rest = {}) => keyedConfig(upstream.url, { store: server.store(), storeDeadlineMs: 2_000, ...rest });
  const waitingFor = (key: string) => reached(upstream, key);
  const refuses = (of: Gateway) =>
    eventually(
      () =>
        of.ask('GET', '/healthz').then(
          ({ status }) => status === 503,
          () => true,
        ),
      'new requests refused',
    );

  beforeAll(async () => {
    server = await startStoreServer();
  });
  afterAll(() => server.stop());

  it('a keyed operation finishes, its outcome is stored, exit 0; another process replays it', async () => {
    const key = freshKey();
    const leaving = await startGateway(config());
    const hold = held(answer({ status: 201, body: 'settled' }));
    upstream.behave(hold.behaviour);
    const asked = post(leaving, key);
    await waitingFor(key);
    leaving.signal('SIGTERM');
    await refuses(leaving);
    hold.release();
    const original = await asked;
    expectOriginal(original, 201);
    expect(await leaving.exited).toEqual({ code: 0, signal: null });
    const next = await startGateway(config());
    expectReplay(await post(next, key), original);
    expect(callsOf(upstream, key)).toHaveLength(1);
    await next.stop();
  });

  it('also if its client has left (I11), and after a 504 of the gateway', async () => {
    const [gone, late] = [freshKey(), freshKey()];
    const leaving = await startGateway(config({ upstreamTimeoutMs: 1_000 }));
    const hold = held(answer({ status: 201, body: 'settled' }));
    upstream.behave(hold.behaviour);
    const client = await openRaw(leaving.port);
    client.write(rawPost(gone));
    await waitingFor(gone);
    client.destroy();
    expectProblem(await post(leaving, late), 504, 'errors/request_timeout');
    leaving.signal('SIGTERM');
    await refuses(leaving);
    hold.release();
    expect(await leaving.exited).toEqual({ code: 0, signal: null });
    const next = await startGateway(config());
    for (const key of [gone, late]) {
      expectKept(await post(next, key), 'settled');
      expect(callsOf(upstream, key)).toHaveLength(1);
    }
    await next.stop();
  });

  it('an operation that hangs is cut off after drainMs, and its retry is not executed a second time', async () => {
    const key = freshKey();
    const leaving = await startGateway(config({ drainMs: 300, idempotency: { leaseMs: 1_000 } }));
    const hold = held();
    upstream.behave(hold.behaviour);
    const asked = post(leaving, key).catch(() => 'broken');
    await waitingFor(key);
    leaving.signal('SIGTERM');
    expect((await leaving.exited).signal).toBeNull();
    await asked;
    const next = await startGateway(config({ idempotency: { leaseMs: 1_000 } }));
    const retry = await post(next, key);
    expect([409, 503, 504]).toContain(retry.status);
    expect(callsOf(upstream, key)).toHaveLength(1);
    hold.release();
    await next.stop();
  });

  it.each(['gone', 'there'])('drainMs bounds an operation that hangs, its client %s', async (client) => {
    const key = freshKey();
    const leaving = await startGateway(config({ drainMs: 500 }));
    const hold = held();
    upstream.behave(hold.behaviour);
    const connection = await openRaw(leaving.port);
    connection.write(rawPost(key));
    await waitingFor(key);
    if (client === 'gone') connection.destroy();
    const began = performance.now();
    leaving.signal('SIGTERM');
    expect((await leaving.exited).signal).toBeNull();
    expect(performance.now() - began).toBeLessThan(6_000);
    connection.destroy();
    hold.release();
  });
});
