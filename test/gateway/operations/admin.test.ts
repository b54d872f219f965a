/** The operator's listener, on real sockets. */
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createAdminServer } from '../../../src/gateway/operations/admin.ts';
import { createHealth } from '../../../src/gateway/operations/health.ts';
import { afterFile } from '../../support/after-file.ts';
import { openRaw, rawRequest, send } from '../../support/raw-http.ts';

it('scrapes that come while the metrics are collected share them, so that many cost as much as one', async () => {
  let collected = 0;
  const render = async () => {
    collected += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return { contentType: 'text/plain', text: `collected ${collected}` };
  };
  const server = createAdminServer(
    { render },
    createHealth(async () => 'ok'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => void server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const client = await openRaw(port);
  client.write(rawRequest('GET', '/metrics').repeat(500));
  expect((await client.waitFor(500)).map(({ status }) => status)).toEqual(Array(500).fill(200));
  expect(collected).toBeLessThan(50);
  const next = collected + 1;
  expect((await send(port, { path: '/metrics' })).text).toBe(`collected ${next}`);
});
