/** If the upstream did not receive the request, its charge is refunded (S13). Nothing is sent twice. */

import type { Passage } from 'headgate/gate';
import { eventually, openRaw, type RawReply, rawRequest, send } from 'headgate-testbed/raw-http';
import { answer, type Behaviour, held, startUpstream } from 'headgate-testbed/upstream';
import { afterEach, describe, expect, it } from 'vitest';
import type { Exchange } from '../../src/exchange/exchange.ts';
import { createProxy, type ForwardSettings, type ProxyOptions } from '../../src/proxy/proxy.ts';
import { FORWARD_SETTINGS, passageOf, serveExchanges } from '../support/exchange-server.ts';
import { configOf, expectProblem, freePort, NO_RATES, ratesOf, TOKEN } from '../support/gateway.ts';
import { startInProcess, startMute } from '../support/in-process.ts';

const CHATS = '/api/v1/chats?account_id=acc_1';
const LIMITS = { default: { allMethods: ['5/1m'] } };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((clean) => clean()));
});

describe('an upstream that did not receive the request', () => {
  it('connection refused: 503 errors/network_down, the charge refunded, no rate-limit headers', async () => {
    const port = await freePort();
    const gateway = await startInProcess(configOf(`http://127.0.0.1:${port}`, { limits: LIMITS }));
    for (const body of [undefined, 'four']) {
      const reply = await gateway.ask('POST', CHATS, {}, body === undefined ? {} : { body });
      expectProblem(reply, 503, 'errors/network_down');
      expect(ratesOf(reply)).toEqual(NO_RATES);
    }
    expect(await gateway.metrics()).toContain('headgate_refunds_total{route="POST /api/v1/chats"} 2');
    const upstream = await startUpstream(answer(), port);
    expect(ratesOf(await gateway.ask('POST', CHATS))).toMatchObject({ limit: 5, remaining: 4 });
    expect(upstream.seen).toHaveLength(1);
  });

  it('a handshake that never ends: 504 after upstreamTimeoutMs, with or without the body; refunded', async () => {
    const mute = await startMute();
    const limits = { default: { allMethods: ['1/1m'] } };
    const gateway = await startInProcess(
      configOf(`https://127.0.0.1:${mute.port}`, { limits, upstreamTimeoutMs: 100 }),
    );
    expectProblem(await gateway.ask('GET', CHATS), 504, 'errors/request_timeout');
    const half = await openRaw(gateway.port);
    half.write(`${rawRequest('GET', CHATS, { 'x-api-key': TOKEN, 'content-length': '9' })}half`);
    const [reply] = await half.waitFor(1);
    half.destroy();
    expectProblem(reply as RawReply, 504, 'errors/request_timeout');
    expectProblem(await gateway.ask('GET', CHATS), 504, 'errors/request_timeout');
  });

  it('a client that disconnects before anything was sent: refunded', async () => {
    const mute = await startMute();
    const gateway = await startInProcess(configOf(`https://127.0.0.1:${mute.port}`, { limits: LIMITS }));
    const connection = await openRaw(gateway.port);
    connection.write(rawRequest('GET', CHATS, { 'x-api-key': TOKEN }));
    await eventually(() => mute.connections() === 1, 'the connection to the upstream');
    connection.destroy();
    await eventually(async () => (await gateway.metrics()).includes('headgate_refunds_total{'), 'the refund');
    await eventually(() => gateway.lines().length === 1, 'its line');
    expect(gateway.lines()).toMatchObject([{ status: 499, aborted: true, decision: 'accepted' }]);
  });
});

interface PassageCalls {
  settled: number[];
  abandoned: number;
}

/** A passage that counts its calls. */
const recordCalls = (calls: PassageCalls): Passage =>
  passageOf({
    settle: ({ status }) => {
      calls.settled.push(status);
      return { headers: {}, stripRateLimit: status === 429 };
    },
    abandon: async () => {
      calls.abandoned += 1;
      return undefined;
    },
  });

const POOL: Omit<ProxyOptions, 'upstream'> = { idleMs: 1_000, maxConnections: 10, maxPerApplication: 10 };

it.each([204, 304])('a %i with a content-length is complete without a body: nothing breaks off', async (status) => {
  const upstream = await startUpstream((_seen, response) => {
    response.socket?.end(`HTTP/1.1 ${status} Whatever\r\netag: "1"\r\nContent-Length: 5\r\n\r\n`);
  });
  const gateway = await startInProcess(configOf(upstream.url, { limits: LIMITS }));
  for (let i = 1; i <= 2; i += 1) {
    const reply = await gateway.ask('GET', CHATS);
    expect(reply).toMatchObject({ status, text: '', broken: false, headers: { etag: '"1"' } });
    expect(ratesOf(reply).remaining).toBe(5 - i);
  }
});

it('a request that Node refuses to send was not sent: 400, and the charge is refunded', async () => {
  const upstream = await startUpstream();
  const calls: PassageCalls = { settled: [], abandoned: 0 };
  const proxy = createProxy({ ...POOL, upstream: upstream.url });
  cleanups.push(() => proxy.close());
  const port = await serveExchanges((exchange) => {
    exchange.request.url = '/a b';
    proxy.forward(exchange, recordCalls(calls), FORWARD_SETTINGS);
  });
  const reply = await send(port, { path: '/' });
  expectProblem(reply, 400, 'errors/malformed_request');
  expect(calls).toEqual({ settled: [], abandoned: 1 });
  expect(upstream.seen).toHaveLength(0);
});

describe('a forwarding', () => {
  /** A proxy in front of an upstream that does what the test says, with one request. */
  async function start(behaviour: Behaviour, options: Partial<ProxyOptions & ForwardSettings> = {}, headers = {}) {
    const calls: PassageCalls = { settled: [], abandoned: 0 };
    const upstream = await startUpstream(behaviour);
    const proxy = createProxy({ ...POOL, upstream: upstream.url, ...options });
    cleanups.push(() => proxy.close());
    let started: Exchange | undefined;
    const port = await serveExchanges((exchange) => {
      started = exchange;
      proxy.forward(exchange, recordCalls(calls), { ...FORWARD_SETTINGS, ...options });
    });
    const connection = await openRaw(port);
    connection.write(rawRequest('POST', '/', headers));
    return { exchange: await eventually(() => started, 'the request'), upstream, proxy, calls, connection };
  }

  it('that was given up before it had a connection is never sent', async () => {
    const mute = await startMute();
    const { exchange, calls, connection, proxy } = await start(answer(), {
      upstream: `https://127.0.0.1:${mute.port}`,
    });
    await eventually(() => mute.connections() === 1, 'the connection');
    exchange.release?.();
    expect(calls).toEqual({ settled: [], abandoned: 1 });
    await eventually(() => proxy.connectionsInUse === 0, 'the end of the connection');
    expect(calls).toEqual({ settled: [], abandoned: 1 });
    expect(exchange.answered).toBe(false);
    connection.destroy();
  });

  it('that was given up ignores a late response: its passage is not settled twice', async () => {
    const hold = held();
    const { exchange, upstream, calls, connection } = await start(hold.behaviour);
    await eventually(() => hold.waiting() === 1, 'the request at the upstream');
    exchange.release?.();
    hold.release();
    await upstream.last().over;
    expect(calls).toEqual({ settled: [], abandoned: 0 });
    connection.destroy();
  });

  it('S16: stays charged if a head arrived, even if the client has just disconnected', async () => {
    const onHead = ({ response }: Exchange) => void response.destroy();
    const { calls, connection } = await start(answer(), { onHead });
    await connection.closed;
    expect(calls).toEqual({ settled: [200], abandoned: 0 });
    expect(connection.received()).toBe('');
  });

  it('breaks the response off if the request body fails after the response began', async () => {
    const { exchange, connection } = await start(
      (_seen, response) => void response.writeHead(200).flushHeaders(),
      {},
      { 'transfer-encoding': 'chunked' },
    );
    await eventually(() => connection.received().includes('200 OK'), 'the head');
    connection.write(`65\r\n${'x'.repeat(101)}\r\n`);
    await connection.closed;
    expect(exchange.response.writableFinished).toBe(false);
    expect(connection.replies()).toEqual([]);
  });
});
