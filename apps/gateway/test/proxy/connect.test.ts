import type { LookupFunction, Socket } from 'node:net';
import { createServer } from 'node:tls';
import { afterFile } from 'headgate-testbed/after-file';
import { createCertificate } from 'headgate-testbed/certificate';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { connectorTo } from '../../src/proxy/connect.ts';
import { startInProcess, startMute } from '../support/in-process.ts';
import { keyedConfig } from '../support/keyed.ts';
import { startRawUpstream } from '../support/raw-upstream.ts';

const certificate = createCertificate();
afterAll(() => certificate.remove());
afterEach(() => {
  vi.useRealTimers();
});

const closed = (socket: Socket) =>
  new Promise<Error | undefined>((resolve) => {
    let reason: Error | undefined;
    socket.on('error', (error) => {
      reason = error;
    });
    socket.once('close', () => resolve(reason));
  });

describe('a connection to the upstream', () => {
  it('with https names the host to the server, if it is a name, and refuses a certificate that is not trusted', async () => {
    const names: string[] = [];
    const { cert, key } = certificate;
    const server = createServer({ cert, key, SNICallback: (name, done) => done(null, void names.push(name) as never) });
    await new Promise<void>((resolve) => server.listen(0, resolve));
    afterFile(() => void server.close());
    const { port } = server.address() as { port: number };
    for (const host of ['localhost', '127.0.0.1']) {
      const ready = vi.fn();
      const reason = await closed(connectorTo(new URL(`https://${host}:${port}`))(ready));
      expect(reason).toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
      expect(ready).not.toHaveBeenCalled();
    }
    expect(names).toEqual(['localhost']);
  });

  it('that takes longer than 10 seconds is closed', async () => {
    const mute = await startMute();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const ready = vi.fn();
    const socket = connectorTo(new URL(`https://127.0.0.1:${mute.port}`))(ready);
    const end = closed(socket);
    vi.advanceTimersByTime(9_999);
    expect(socket.destroyed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(await end).toMatchObject({ code: 'ETIMEDOUT' });
    expect(ready).not.toHaveBeenCalled();
  });

  it('shares the look-up of the name with all connections that begin meanwhile', async () => {
    const upstream = await startRawUpstream();
    const lookups: Parameters<LookupFunction>[2][] = [];
    const connect = connectorTo(new URL(`http://name.test:${new URL(upstream.url).port}`), (_name, _options, done) => {
      lookups.push(done);
    });
    const failing = [connect(() => {}), connect(() => {})].map(closed);
    expect(lookups).toHaveLength(1);
    lookups[0]?.(Object.assign(new Error('no answer'), { code: 'EAI_AGAIN' }), []);
    for (const reason of await Promise.all(failing)) expect(reason).toMatchObject({ code: 'EAI_AGAIN' });
    const ready = [1, 2].map(() => new Promise<void>((resolve) => void connect(resolve)));
    connect(() => {}).destroy();
    expect(lookups).toHaveLength(2);
    lookups[1]?.(null, [{ address: '127.0.0.1', family: 4 }]);
    await Promise.all(ready);
  });

  it('may have an IPv6 address', async () => {
    const upstream = await startRawUpstream(undefined, '::1');
    const gateway = await startInProcess(keyedConfig(upstream.url));
    expect((await gateway.ask('POST', '/api/v1/open', {}, { body: 'x' })).status).toBe(200);
    expect(upstream.requests[0]).toContain(`\r\nHost: ${new URL(upstream.url).host}\r\n`);
  });
});
