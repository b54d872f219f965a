/** contract.md, "Answers": an upstream that did not get the request gives its charge back (S13), and nothing is sent twice. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Passage } from '../../../src/gate/gate.ts';
import { createExchange, type Exchange } from '../../../src/gateway/exchange/exchange.ts';
import { Forwarding, type ForwardingOptions } from '../../../src/gateway/proxy/forwarding.ts';
import { createProxy } from '../../../src/gateway/proxy/proxy.ts';
import { configOf, expectProblem, freePort, NO_RATES, ratesOf, TOKEN } from '../../support/gateway.ts';
import { startInProcess, startMute } from '../../support/in-process.ts';
import { eventually, openRaw, type RawReply, rawRequest, send } from '../../support/raw-http.ts';
import { answer, startUpstream } from '../../support/upstream.ts';

const CHATS = '/api/v1/chats?account_id=acc_1';
const LIMITS = { default: { allMethods: ['5/1m'] } };

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((clean) => clean()));
});

describe('an upstream that did not get the request', () => {
  it('refused: 503 errors/network_down, the charge refunded, no rate-limit headers', async () => {
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

  it('a handshake without an end: 504 within upstreamTimeoutMs, whatever became of the body; refunded', async () => {
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

  it('a client that goes away before anything was sent: refunded', async () => {
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

interface Told {
  settled: number[];
  abandoned: number;
}

/** A passage that writes down what it is told. */
function passageOf(told: Told): Passage {
  return {
    kind: 'proceed',
    decision: undefined,
    headers: {},
    settle: ({ status }) => {
      told.settled.push(status);
      return { headers: {}, stripRateLimit: status === 429 };
    },
    abandon: async () => {
      told.abandoned += 1;
      return undefined;
    },
  };
}

/** A server that makes an exchange of each request, and nothing else. */
async function exchanges(onExchange: (exchange: Exchange) => void): Promise<number> {
  const server = createServer((request, response) => onExchange(createExchange('id-1', request, response, false)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

const OPTIONS: ForwardingOptions = { timeoutMs: 1_000, maxBodyBytes: 100, onHead: () => {} };

it.each([204, 304])('a %i that states a length is a whole answer without it: nothing breaks off', async (status) => {
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

it('what undici refuses to send was not sent: 400, and the charge goes back', async () => {
  const upstream = await startUpstream();
  const told: Told = { settled: [], abandoned: 0 };
  const proxy = createProxy({ ...OPTIONS, upstream: upstream.url });
  cleanups.push(() => proxy.close());
  const port = await exchanges((exchange) => proxy.forward(exchange, passageOf(told)));
  const reply = await send(port, { method: 'OPTIONS', path: '*' });
  expectProblem(reply, 400, 'errors/malformed_request');
  expect(told).toEqual({ settled: [], abandoned: 1 });
  expect(upstream.seen).toHaveLength(0);
});

describe('a forwarding', () => {
  /** One that nothing has happened to yet, and what undici would hold of it. */
  async function begin(headers: Record<string, string> = {}) {
    const told: Told = { settled: [], abandoned: 0 };
    const aborted: string[] = [];
    const controller = {
      abort: (error: Error) => void aborted.push(error.message),
      rawHeaders: [],
      pause: () => {},
      resume: () => {},
    } as never;
    let begun: { exchange: Exchange; forwarding: Forwarding } | undefined;
    const port = await exchanges((exchange) => {
      begun = { exchange, forwarding: new Forwarding(exchange, passageOf(told), OPTIONS) };
    });
    const connection = await openRaw(port);
    connection.write(rawRequest('POST', '/', headers));
    return { ...(await eventually(() => begun, 'the request')), told, aborted, controller, connection };
  }

  it('given up before a connection was there is never sent', async () => {
    const { exchange, forwarding, told, aborted, controller, connection } = await begin();
    exchange.release?.();
    expect(told.abandoned).toBe(1);
    forwarding.onRequestStart(controller);
    expect(aborted).toEqual(['given up before it was sent']);
    forwarding.onResponseError(controller, new Error('aborted'));
    expect(told).toEqual({ settled: [], abandoned: 1 });
    expect(exchange.answered).toBe(false);
    connection.destroy();
  });

  it('given up hears of no late answer: its outcome is not settled twice', async () => {
    const { exchange, forwarding, told, aborted, controller, connection } = await begin();
    forwarding.onRequestStart(controller);
    exchange.release?.();
    expect(aborted).toEqual(['given up']);
    forwarding.onResponseStart(controller, 200, {}, 'OK');
    expect(told).toEqual({ settled: [], abandoned: 0 });
    connection.destroy();
  });

  it('S16: of a head that came, the charge stays, though the client has just gone', async () => {
    const { exchange, forwarding, told, aborted, controller, connection } = await begin();
    forwarding.onRequestStart(controller);
    exchange.response.destroy();
    forwarding.onResponseStart(controller, 200, {}, 'OK');
    expect(told).toEqual({ settled: [200], abandoned: 0 });
    expect(aborted).toEqual(['given up']);
    await connection.closed;
    expect(connection.received()).toBe('');
  });

  it('a body that breaks after the answer began breaks the answer off', async () => {
    const { exchange, forwarding, controller, connection } = await begin({ 'transfer-encoding': 'chunked' });
    forwarding.onRequestStart(controller);
    forwarding.onResponseStart(controller, 200, {}, 'OK');
    await eventually(() => connection.received().includes('200 OK'), 'the head');
    connection.write(`65\r\n${'x'.repeat(101)}\r\n`);
    await connection.closed;
    expect(exchange.response.writableFinished).toBe(false);
    expect(connection.replies()).toEqual([]);
  });
});
