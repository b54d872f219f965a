/** The operator's listener, on real sockets. */
import type { AddressInfo } from 'node:net';
import { afterFile } from 'headgate-testbed/after-file';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { eventually, openRaw, type RawConnection, rawRequest, send } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { createAdminServer } from '../../src/admin/admin-server.ts';
import { createHealth } from '../../src/operations/health.ts';

async function startAdmin(render: () => Promise<string>, state: Parameters<typeof createHealth>[0] = async () => 'ok') {
  const collect = async () => ({ contentType: 'text/plain', text: await render() });
  const server = createAdminServer({ metrics: { render: collect }, health: createHealth(state) });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => void server.close().closeAllConnections());
  const connections = () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count)));
  return { port: (server.address() as AddressInfo).port, connections };
}

it('scrapes that come while the metrics are collected share them, so that many cost as much as one', async () => {
  let collected = 0;
  const { port } = await startAdmin(async () => {
    collected += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return `collected ${collected}`;
  });
  const client = await openRaw(port);
  client.write(rawRequest('GET', '/metrics').repeat(500));
  expect((await client.waitFor(500)).map(({ status }) => status)).toEqual(Array(500).fill(200));
  expect(collected).toBeLessThan(50);
  const next = collected + 1;
  expect((await send(port, { path: '/metrics' })).text).toBe(`collected ${next}`);
});

it('health checks that come while one asks the store share its answer: they need no key', async () => {
  let asked = 0;
  const state = async () => {
    asked += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return 'ok' as const;
  };
  const { port } = await startAdmin(async () => '', state);
  const client = await openRaw(port);
  client.write(rawRequest('GET', '/readyz').repeat(500));
  expect((await client.waitFor(500)).map(({ status }) => status)).toEqual(Array(500).fill(200));
  expect(asked).toBeLessThan(50);
});

// It takes 20 s. `tls-server.test.ts` has the same of the gateway's own listener.
it.runIf(NIGHTLY)('a client that reads nothing of its answer is cut', async () => {
  const { port, connections } = await startAdmin(async () => 'x'.repeat(16_777_216));
  const client = await openRaw(port);
  client.socket.pause();
  client.write(rawRequest('GET', '/metrics'));
  await eventually(async () => (await connections()) === 0, 'the end of the connection', 60_000);
});

describe('past 256 connections', () => {
  const openAll = (port: number) => Promise.all(Array.from({ length: 256 }, () => openRaw(port)));
  const closeAll = (clients: readonly RawConnection[]) => {
    for (const client of clients) client.destroy();
  };
  const check = async (port: number) => (await send(port, { path: '/livez' })).status;

  it('the connection that has been idle for the longest time makes room, so a health check is answered', async () => {
    const { port, connections } = await startAdmin(async () => 'metrics');
    const clients = await openAll(port);
    await eventually(async () => (await connections()) === 256, 'all connections');
    const [first, second] = clients as [RawConnection, RawConnection];
    first.write(rawRequest('GET', '/livez'));
    await first.waitFor(1);
    expect(await check(port)).toBe(200);
    await second.closed;
    first.write(rawRequest('GET', '/livez'));
    expect(await first.waitFor(2)).toHaveLength(2);
    closeAll(clients);
  });

  it('a connection with a running request stays', async () => {
    let finish = (_text: string): void => {};
    const { port, connections } = await startAdmin(() => new Promise((resolve) => (finish = resolve)));
    const scrape = send(port, { path: '/metrics' });
    await eventually(async () => (await connections()) === 1, 'the scrape');
    const clients = await openAll(port);
    expect(await check(port)).toBe(200);
    finish('metrics');
    expect((await scrape).text).toBe('metrics');
    closeAll(clients);
  });

  it('a client that does not read its answer makes room: the metrics need no token', async () => {
    const answers = [Promise.resolve('x'.repeat(16_777_216))];
    const { port, connections } = await startAdmin(() => answers.pop() ?? new Promise(() => {}));
    const silent = await openRaw(port);
    const begun = new Promise<void>((resolve) => {
      silent.socket.once('data', () => resolve(void silent.socket.pause()));
    });
    silent.write(rawRequest('GET', '/metrics'));
    await begun;
    const running = await Promise.all(Array.from({ length: 255 }, () => openRaw(port)));
    for (const client of running) client.write(rawRequest('GET', '/metrics'));
    await eventually(async () => (await connections()) === 256, 'all connections');
    expect(await check(port)).toBe(200);
    silent.socket.resume();
    await silent.closed;
    expect(silent.received().length).toBeLessThan(16_777_216);
    closeAll(running);
  });
});
