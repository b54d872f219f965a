/** An upstream behind TLS. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createCertificate } from 'headgate-testbed/certificate';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { configOf, expectProblem, NO_RATES, ratesOf, startGateway } from '../support/gateway.ts';

const CHATS = '/api/v1/chats?account_id=acc_1';
const certificate = createCertificate();
let connections = 0;
let resumed = 0;
const server = createServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
  request.resume().on('end', () => response.end(`${request.method} ${request.headers.host}`));
});
server.on('secureConnection', (socket) => {
  connections += 1;
  if (socket.isSessionReused()) resumed += 1;
});
let url = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  certificate.remove();
});

it('is trusted by a certificate of NODE_EXTRA_CA_CERTS; a second handshake resumes the first', async () => {
  const config = configOf(url, { upstreamIdleMs: 0 });
  const gateway = await startGateway(config, [], { NODE_EXTRA_CA_CERTS: certificate.certFile });
  for (const body of ['', 'x'.repeat(200_000)]) {
    expect(await gateway.ask('POST', CHATS, {}, { body })).toMatchObject({
      status: 200,
      text: `POST ${new URL(url).host}`,
    });
  }
  expect({ connections, resumed }).toEqual({ connections: 2, resumed: 1 });
  await gateway.stop();
});

it('is not trusted otherwise: 503, and the charge is refunded, because nothing was sent', async () => {
  const gateway = await startGateway(configOf(url));
  for (let i = 0; i < 2; i += 1) {
    const reply = await gateway.ask('POST', CHATS, {}, { body: 'x' });
    const { detail } = expectProblem(reply, 503, 'errors/network_down');
    expect(detail).toMatch(/did not receive/);
    expect(ratesOf(reply)).toEqual(NO_RATES);
  }
  await gateway.stop();
});
