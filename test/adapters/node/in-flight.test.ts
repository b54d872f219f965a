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
