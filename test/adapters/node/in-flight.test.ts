import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterFile } from 'headgate-testbed/after-file';
import { expect, it } from 'vitest';
import { withHeadgate } from '../../../src/adapters/node.ts';
import { createGate, createLimiter } from '../../../src/index.ts';

it('S29: pipelined requests give their slots back if the client is gone before their turn', async () => {
  const limiter = createLimiter({ limits: { allMethods: { windows: ['99/1m'], inFlight: 20 } }, validate: false });
  const gate = createGate({ limiter, account: () => 'a', route: () => 'r', validate: false });
  const running = async () => (await limiter.inFlight({ account: 'a', route: 'r' }))?.running;
  const responses: { end(): void }[] = [];
  const server = createServer(withHeadgate(gate, (_, response) => void responses.push(response))).listen(
    0,
    '127.0.0.1',
  );
  afterFile(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(20));
  await expect.poll(running).toBe(20);
  // A response that waits for its turn ends when it was sent.
  responses[1]?.end();
  responses[0]?.end();
  await expect.poll(running).toBe(18);
  client.destroy();
  await expect.poll(running).toBe(0);
  for (const response of responses) response.end();
  expect(await running()).toBe(0);
});

it('S29: a WebSocket counts from the upgrade until its socket closes, however it does', async () => {
  const limiter = createLimiter({ limits: { allMethods: { windows: ['99/1m'], inFlight: 1 } }, validate: false });
  const subject = { account: 'a', route: 'r' };
  const server = createServer().listen(0, '127.0.0.1');
  server.on('upgrade', async (_, socket) => {
    const decision = await limiter.consume(subject);
    if (!decision.accepted) return socket.end('HTTP/1.1 429 Too Many Requests\r\n\r\n');
    socket.on('error', () => {}).once('close', () => limiter.release(decision));
    // As a library for WebSockets does.
    socket.on('end', () => socket.end()).resume();
    return socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
  });
  afterFile(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const open = async () => {
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.on('error', () => {});
    client.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
    const [head] = await once(client, 'data');
    return { client, status: String(head).slice(9, 12) };
  };
  for (const end of ['end', 'destroy', 'resetAndDestroy'] as const) {
    const first = await open();
    expect([first.status, (await open()).status]).toEqual(['101', '429']);
    first.client[end]();
    await expect.poll(async () => (await limiter.inFlight(subject))?.running).toBe(0);
  }
});
