/** The demonstration and its mock provider. */

import { openRaw, send } from 'headgate-testbed/raw-http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDemo } from '../../src/cli/demo.ts';
import { createMockProvider } from '../../src/cli/mock-provider.ts';
import { ConfigError } from '../../src/config/config-error.ts';
import { LISTEN_PLACES, listen } from '../../src/server/listen.ts';

describe('the mock provider', () => {
  const provider = createMockProvider();
  let port: number;
  beforeAll(async () => {
    ({ port } = await listen(provider, { host: '127.0.0.1', port: 0 }, LISTEN_PLACES));
  });
  afterAll(() => {
    provider.close();
    provider.closeAllConnections();
  });

  it.each([
    [
      'POST',
      '/api/v1/emails?account_id=a',
      201,
      { object: 'EmailSent', tracking_id: expect.stringMatching(/^[0-9a-f-]{36}$/) },
    ],
    ['GET', '/api/v1/chats/chat_1?account_id=a', 200, { object: 'Chat', id: 'chat_1', messages: [] }],
    ['GET', '/v2/accounts', 200, { object: 'AccountList', items: [] }],
    ['GET', '/api/v1/emails', 404, { object: 'Error' }],
    ['POST', '/api/v1/chats/chat_1', 404, { object: 'Error' }],
    ['GET', '/api/v1/chats/', 404, { object: 'Error' }],
    ['POST', '/v2/accounts', 404, { object: 'Error' }],
    ['GET', '/', 404, { object: 'Error' }],
  ])('%s %s: %i, in JSON', async (method, path, status, body) => {
    const reply = await send(port, { method, path, body: method === 'POST' ? 'anything' : '' });
    expect(reply).toMatchObject({ status, headers: { 'content-type': 'application/json' } });
    expect(JSON.parse(reply.text)).toMatchObject(body);
  });

  it('answers after it has read the whole request', async () => {
    const connection = await openRaw(port);
    connection.write('POST /api/v1/emails HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\n12');
    expect((await send(port, { path: '/v2/accounts' })).status).toBe(200);
    expect(connection.received()).toBe('');
    connection.write('34');
    expect((await connection.waitFor(1))[0]?.status).toBe(201);
    connection.destroy();
  });
});

describe('the demonstration', () => {
  it('runs the provider as upstream, and prints commands for its own address', async () => {
    const demo = await startDemo({});
    const { config } = demo;
    expect((await send(Number(new URL(config.upstream).port), { path: '/v2/accounts' })).status).toBe(200);
    expect(config).toMatchObject({ listen: { port: 8080 }, admin: { port: 8081 }, store: 'memory' });
    const banner = demo.banner({ host: '::1', port: 7 }, { host: '127.0.0.1', port: 9 });
    expect(banner).toContain('headgate listening on http://[::1]:7, metrics on http://127.0.0.1:9/metrics');
    expect(banner.match(/curl .*'http:\/\/\[::1\]:7\//g)).toHaveLength(3);
    expect(demo.banner({ host: 'a', port: 7 }, undefined)).toMatch(/^headgate listening on http:\/\/a:7$/m);
    demo.close();
    await expect(send(Number(new URL(config.upstream).port), { path: '/' })).rejects.toThrow('ECONNREFUSED');
  });

  it('on another port it can run twice, because its admin listener takes any free port', async () => {
    const demo = await startDemo({ port: '0' });
    expect(demo.config).toMatchObject({ listen: { port: 0 }, admin: { port: 0 } });
    demo.close();
  });

  it('bad flags are errors of the command line', async () => {
    await expect(startDemo({ port: 'x' })).rejects.toThrow(ConfigError);
    await expect(startDemo({ port: 'x' })).rejects.toThrow(/^The command line has an error:\n {2}--port: /);
  });
});
