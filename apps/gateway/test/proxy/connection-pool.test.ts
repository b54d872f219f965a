/** Which connection a request gets, how many there are, and who waits. */

import { eventually, openRaw, pause, rawRequest, send } from 'headgate-testbed/raw-http';
import { afterEach, describe, expect, it } from 'vitest';
import { createProxy } from '../../src/proxy/proxy.ts';
import { FORWARD_SETTINGS, passageOf, serveExchanges } from '../support/exchange-server.ts';
import { expectProblem, NO_RATES, ratesOf, TOKEN } from '../support/gateway.ts';
import { startInProcess } from '../support/in-process.ts';
import { expectOriginal, freshKey, keyedConfig, MESSAGES, OTHER_TOKEN, post } from '../support/keyed.ts';
import { okay, startRawUpstream } from '../support/raw-upstream.ts';

const PLAIN = '/api/v1/plain?account_id=acc_1';
const THEIRS = '/api/v1/plain?account_id=acc_other';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((clean) => clean()));
});

/** An upstream whose responses wait until the test sends them, oldest first. */
async function startHeld() {
  const waiting: (() => void)[] = [];
  const upstream = await startRawUpstream((socket) => void waiting.push(() => socket.write(okay())));
  const next = () => waiting.shift()?.();
  return { ...upstream, open: upstream.open, waiting, next };
}

const gauge = async (gateway: { metrics(): Promise<string> }, name: string) =>
  Number(new RegExp(`^headgate_${name} (\\d+)$`, 'm').exec(await gateway.metrics())?.[1]);

describe('the number of connections', () => {
  it('is bounded: requests past it wait, also pipelined ones, and all of them are answered', async () => {
    const upstream = await startHeld();
    const gateway = await startInProcess(keyedConfig(upstream.url, { maxUpstreamConnections: 8 }));
    const connections = await Promise.all(Array.from({ length: 10 }, () => openRaw(gateway.port)));
    // An application uses half of the connections, if the config says nothing else.
    for (const connection of connections) connection.write(rawRequest('POST', PLAIN, { 'x-api-key': TOKEN }).repeat(3));
    await eventually(async () => (await gauge(gateway, 'upstream_waiting')) === 26, '26 requests that wait');
    expect(upstream.open()).toBe(4);
    expect(await gauge(gateway, 'upstream_connections_in_use')).toBe(4);
    const done = setInterval(() => upstream.next(), 1);
    for (const connection of connections) {
      expect((await connection.waitFor(3)).map(({ status }) => status)).toEqual([200, 200, 200]);
      connection.destroy();
    }
    clearInterval(done);
    expect(upstream.connections).toHaveLength(4);
    expect(await gauge(gateway, 'upstream_waiting')).toBe(0);
    expect(await gauge(gateway, 'upstream_connections_in_use')).toBe(0);
  });

  it('per application leaves connections for the others, and applications take turns', async () => {
    const upstream = await startHeld();
    const gateway = await startInProcess(
      keyedConfig(upstream.url, { maxUpstreamConnections: 3, perApplication: { maxUpstreamConnections: 2 } }),
    );
    const order: string[] = [];
    const ask = async (name: string, path: string, token: string) => {
      const reply = await gateway.ask('POST', path, { 'x-api-key': token, 'x-name': name });
      expect(reply.status).toBe(200);
      order.push(name);
    };
    const replies: Promise<void>[] = [];
    const reached = () => upstream.requests.map((request) => /x-name: (\w+)/.exec(request)?.[1]);
    for (let i = 1; i <= 6; i += 1) {
      replies.push(ask(`a${i}`, PLAIN, TOKEN));
      await eventually(
        async () => upstream.requests.length + (await gauge(gateway, 'upstream_waiting')) === i,
        `a${i}`,
      );
    }
    expect(reached()).toEqual(['a1', 'a2']);
    for (let i = 1; i <= 3; i += 1) {
      replies.push(ask(`b${i}`, THEIRS, OTHER_TOKEN));
      await eventually(
        async () => upstream.requests.length + (await gauge(gateway, 'upstream_waiting')) === 6 + i,
        'b',
      );
    }
    expect(reached()).toEqual(['a1', 'a2', 'b1']);
    for (let count = 4; count <= 9; count += 1) {
      upstream.next();
      await eventually(() => upstream.requests.length === count, `request ${count}`);
    }
    expect(reached()).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'a4', 'b3', 'a5', 'a6']);
    while (upstream.waiting.length > 0) upstream.next();
    await Promise.all(replies);
  });

  it('too many requests wait: 503, refunded, and the key is released', async () => {
    const upstream = await startHeld();
    const gateway = await startInProcess(
      keyedConfig(upstream.url, { maxUpstreamConnections: 1, limits: { default: { allMethods: ['20/1m'] } } }),
    );
    const replies = Array.from({ length: 9 }, () => gateway.ask('POST', PLAIN));
    await eventually(async () => (await gauge(gateway, 'upstream_waiting')) === 8, '8 requests that wait');
    const key = freshKey();
    for (let i = 0; i < 2; i += 1) {
      const refused = await post(gateway, key, { path: MESSAGES });
      expectProblem(refused, 503, 'errors/service_unavailable');
      expectOriginal(refused, 503);
      expect(ratesOf(refused)).toEqual({ ...NO_RATES, retryAfter: 1 });
    }
    const done = setInterval(() => upstream.next(), 1);
    for (const reply of await Promise.all(replies)) expect(reply.status).toBe(200);
    expect(ratesOf(await post(gateway, key, { path: MESSAGES }))).toMatchObject({ limit: 20, remaining: 19 });
    clearInterval(done);
  });

  it('a wait of upstreamTimeoutMs: 503, refunded, and never sent', async () => {
    const upstream = await startHeld();
    const gateway = await startInProcess(
      keyedConfig(upstream.url, { maxUpstreamConnections: 1, upstreamTimeoutMs: 150 }),
    );
    // With a key the forwarding continues after the 504, and uses the connection.
    expectProblem(await post(gateway, freshKey()), 504, 'errors/request_timeout');
    const refused = await post(gateway, freshKey(), { path: MESSAGES });
    expectProblem(refused, 503, 'errors/service_unavailable');
    expect(ratesOf(refused)).toEqual({ ...NO_RATES, retryAfter: 1 });
    upstream.next();
    await eventually(async () => (await gauge(gateway, 'upstream_connections_in_use')) === 0, 'the end of the first');
    expect(upstream.requests).toHaveLength(1);
  });

  it('a client that leaves while its request waits: it is refunded and never sent, also with a key', async () => {
    const upstream = await startHeld();
    const gateway = await startInProcess(keyedConfig(upstream.url, { maxUpstreamConnections: 1 }));
    const first = gateway.ask('POST', PLAIN);
    await eventually(() => upstream.requests.length === 1, 'the first request');
    const key = freshKey();
    const [plain, keyed] = [await openRaw(gateway.port), await openRaw(gateway.port)];
    plain.write(rawRequest('POST', PLAIN, { 'x-api-key': TOKEN }));
    keyed.write(rawRequest('POST', MESSAGES, { 'x-api-key': TOKEN, 'idempotency-key': key }));
    await eventually(async () => (await gauge(gateway, 'upstream_waiting')) === 2, 'two requests that wait');
    plain.destroy();
    keyed.destroy();
    await eventually(async () => (await gauge(gateway, 'upstream_waiting')) === 0, 'no request that waits');
    await eventually(async () => /refunds_total\{.*messages.*\} 1/.test(await gateway.metrics()), 'the refund');
    upstream.next();
    expect((await first).status).toBe(200);
    expect(upstream.requests).toHaveLength(1);
  });
});

describe('a connection that is used again', () => {
  it('is the one that was used last', async () => {
    const upstream = await startRawUpstream();
    const gateway = await startInProcess(keyedConfig(upstream.url));
    for (let i = 0; i < 20; i += 1) expect((await gateway.ask('POST', PLAIN, {}, { body: 'x' })).status).toBe(200);
    expect(upstream.connections).toHaveLength(1);
  });

  it('was idle for less than upstreamIdleMs; past that it is closed', async () => {
    const upstream = await startRawUpstream();
    const gateway = await startInProcess(keyedConfig(upstream.url, { upstreamIdleMs: 100 }));
    await gateway.ask('POST', PLAIN);
    await pause(150);
    await gateway.ask('POST', PLAIN);
    expect(upstream.connections).toHaveLength(2);
    await eventually(() => upstream.open() === 0, 'the end of both');
  });

  it.each([
    [1, 2],
    [60, 1],
  ])('the upstream says Keep-Alive: timeout=%i: two requests on %i connections', async (seconds, connections) => {
    const fields = `Keep-Alive: timeout=${seconds}, max=100\r\n`;
    const upstream = await startRawUpstream((socket) => void socket.write(okay('ok', fields)));
    const gateway = await startInProcess(keyedConfig(upstream.url));
    for (let i = 0; i < 2; i += 1) expect((await gateway.ask('POST', PLAIN)).status).toBe(200);
    expect(upstream.connections).toHaveLength(connections);
  });

  it('I6: with a key is never one that the upstream may be closing', async () => {
    // This upstream closes a connection that was idle, just when the next request comes.
    const upstream = await startRawUpstream((socket, _request, count) => {
      if (count > 1) socket.destroy();
      else socket.write(okay());
    });
    const gateway = await startInProcess(keyedConfig(upstream.url));
    for (let i = 0; i < 10; i += 1) {
      expect(await post(gateway, freshKey())).toMatchObject({ status: 200, text: 'ok' });
      await pause(110);
    }
    expect(upstream.requests).toHaveLength(10);
  });

  it('with a key is used again directly after a request: a busy gateway does not open one per request', async () => {
    const upstream = await startRawUpstream();
    const gateway = await startInProcess(keyedConfig(upstream.url));
    const sender = async () => {
      for (let i = 0; i < 20; i += 1) expect((await post(gateway, freshKey())).status).toBe(200);
    };
    await Promise.all(Array.from({ length: 5 }, sender));
    expect(upstream.connections.length).toBeLessThan(100);
  });
});

/** A proxy behind a server that only creates exchanges; `before` is called directly before a request is forwarded. */
async function startProxy(upstream: string, before: () => void) {
  const abandoned: string[] = [];
  const proxy = createProxy({
    upstream,
    idleMs: 5_000,
    maxConnections: 4,
    maxPerApplication: 4,
  });
  cleanups.push(() => proxy.close());
  const port = await serveExchanges((exchange) => {
    if (exchange.request.headers['idempotency-key']) exchange.idempotent = { request: {} as never, forwardedKey: 'k' };
    before();
    const abandon = async () => void abandoned.push(exchange.id);
    proxy.forward(exchange, passageOf({ abandon }), FORWARD_SETTINGS);
  });
  return { port, abandoned, proxy };
}

describe('a connection that the upstream closes in the moment in which a request is forwarded', () => {
  it.each(['destroy', 'resetAndDestroy'] as const)('with a key: the request gets a new one (%s)', async (close) => {
    const upstream = await startRawUpstream();
    const { port, abandoned } = await startProxy(upstream.url, () => {
      for (const socket of upstream.connections) socket[close]();
    });
    for (let i = 0; i < 200; i += 1) {
      const reply = await send(port, { method: 'POST', path: '/', headers: { 'idempotency-key': 'k' } });
      expect(reply).toMatchObject({ status: 200, text: 'ok' });
    }
    expect(abandoned).toEqual([]);
    expect(upstream.requests).toHaveLength(200);
  });

  it('without a key: refunded if nothing was written', async () => {
    const upstream = await startRawUpstream();
    let isClosing = false;
    const { port, abandoned } = await startProxy(upstream.url, () => {
      if (isClosing) for (const socket of upstream.connections) socket.resetAndDestroy();
    });
    expect((await send(port, { path: '/' })).status).toBe(200);
    isClosing = true;
    const reply = await send(port, { path: '/' });
    const { detail } = expectProblem(reply, 503, 'errors/network_down');
    expect(detail).toMatch(/did not receive/);
    expect(abandoned).toHaveLength(1);
    expect(upstream.requests).toHaveLength(1);
  });

  it('without a key, if the request was written: 503, it may have been received, and it is not sent again', async () => {
    const upstream = await startRawUpstream();
    let isClosing = false;
    const { port, abandoned } = await startProxy(upstream.url, () => {
      if (isClosing) for (const socket of upstream.connections) socket.destroy();
    });
    expect((await send(port, { path: '/' })).status).toBe(200);
    isClosing = true;
    const { detail } = expectProblem(await send(port, { path: '/' }), 503, 'errors/network_down');
    expect(detail).toMatch(/may have received/);
    expect(abandoned).toEqual([]);
  });
});

it('a proxy that is closed answers what waits for a connection with 503, and refunds it', async () => {
  const upstream = await startHeld();
  const { port, abandoned, proxy } = await startProxy(upstream.url, () => {});
  const replies = Array.from({ length: 6 }, () => send(port, { path: '/' }));
  await eventually(() => proxy.waiting === 2, 'two requests that wait');
  await proxy.close();
  expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([503, 503, 503, 503, 503, 503]);
  expect(abandoned).toHaveLength(2);
  expect((await send(port, { path: '/' })).status).toBe(503);
});
