/** TLS on the listeners of the gateway, with real handshakes. */
import { connect as connectTcp, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { createCertificate, createCertificateOf } from 'headgate-testbed/certificate';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { eventually, openRaw, pause, rawRequest, send } from 'headgate-testbed/raw-http';
import { answer, startUpstream, type Upstream } from 'headgate-testbed/upstream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { configOf, TOKEN } from '../support/gateway.ts';
import { type InProcess, startInProcess } from '../support/in-process.ts';

const DAY_S = 86_400;
const [own, next, client, stranger] = [
  createCertificate(),
  createCertificateOf({ untilMs: 5 * DAY_S * 1_000 }),
  createCertificate(),
  createCertificate(),
];
const OPEN = '/api/v1/open';
const TLS = { cert: own.certFile, key: own.keyFile };
const TRUST: ConnectionOptions = { ca: own.cert };
const KEY = { 'x-api-key': TOKEN };

let upstream: Upstream;
beforeAll(async () => {
  upstream = await startUpstream();
});
beforeEach(() => upstream.behave(answer()));
afterAll(() => {
  for (const { remove } of [own, next, client, stranger]) remove();
});

const listener = (tls: object = {}) => ({ host: '127.0.0.1', port: 0, tls: { ...TLS, ...tls } });
const start = (tls: object = {}, rest: object = {}): Promise<InProcess> =>
  startInProcess(configOf(upstream.url, { listen: listener(tls), ...rest }));
const ask = ({ port }: InProcess, tls: ConnectionOptions = TRUST, path = OPEN) =>
  send(port, { path, headers: KEY, tls });

/** A TLS connection after its handshake. Rejects if the handshake fails, or if the server closes directly after it. */
function handshake(port: number, options: ConnectionOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ host: '127.0.0.1', port, ...TRUST, ...options });
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
    // With TLS 1.3 a client learns only later that its certificate is refused. An answer shows that it is not.
    socket.once('secureConnect', () => socket.write(rawRequest('GET', '/healthz')));
    socket.once('data', () => resolve(socket));
  });
}

describe('a listener with TLS', () => {
  let gateway: InProcess;
  let silent: Socket;
  let isClosed = false;
  beforeAll(async () => {
    gateway = await start();
    // A client that connects, and never begins a handshake.
    silent = connectTcp({ host: '127.0.0.1', port: gateway.port });
    silent.on('close', () => {
      isClosed = true;
    });
  });

  it('serves HTTPS, and the upstream learns that the client spoke HTTPS', async () => {
    const reply = await ask(gateway);
    expect(reply.status).toBe(200);
    expect(upstream.last().headers).toMatchObject({
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-host': `127.0.0.1:${gateway.port}`,
    });
  });

  it.each([
    ['TLSv1.3', ['h2', 'http/1.1']],
    ['TLSv1.2', ['http/1.1']],
  ] as const)('accepts %s, and of %j it chooses HTTP/1.1', async (version, protocols) => {
    const options = { minVersion: version, maxVersion: version, ALPNProtocols: [...protocols] };
    const socket = await handshake(gateway.port, options);
    expect([socket.getProtocol(), socket.alpnProtocol]).toEqual([version, 'http/1.1']);
    socket.destroy();
  });

  it('refuses TLS 1.1, and a client that speaks only HTTP/2', async () => {
    const old = { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
    await expect(handshake(gateway.port, old)).rejects.toThrow(/version/);
    await expect(handshake(gateway.port, { ALPNProtocols: ['h2'] })).rejects.toThrow(/no application protocol/);
  });

  it('with minVersion 1.3, refuses TLS 1.2', async () => {
    const strict = await start({ minVersion: '1.3' });
    await expect(handshake(strict.port, { maxVersion: 'TLSv1.2' })).rejects.toThrow(/version/);
    expect((await ask(strict)).status).toBe(200);
    await strict.stop();
  });

  it('does not answer plain HTTP, and logs the cause once; a client that only leaves is not logged', async () => {
    const failures = () => gateway.lines().filter(({ msg }) => msg === 'TLS handshake failed');
    const before = failures().length;
    const left = await new Promise<Socket>((resolve) => {
      const socket = connectTcp({ host: '127.0.0.1', port: gateway.port }, () => resolve(socket));
    });
    left.resetAndDestroy();
    const plain = connectTcp({ host: '127.0.0.1', port: gateway.port });
    let text = '';
    plain.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    plain.write(rawRequest('GET', OPEN, KEY));
    await new Promise((resolve) => plain.once('close', resolve));
    expect(text).not.toContain('HTTP/1.1');
    await eventually(() => failures().length > before, 'the line of the failure');
    expect(failures().slice(before)).toEqual([
      expect.objectContaining({ level: 30, listener: 'listen', cause: 'ERR_SSL_HTTP_REQUEST' }),
    ]);
  });

  it('the metric says when the certificate expires', async () => {
    const [, seconds] = /expiry_timestamp_seconds\{listener="listen"\} (\S+)/.exec(await gateway.metrics()) ?? [];
    expect(Math.abs(Number(seconds) - Date.now() / 1_000 - DAY_S)).toBeLessThan(600);
  });

  // It takes them.
  it.runIf(NIGHTLY)('a handshake has ten seconds', async () => {
    await eventually(() => isClosed, 'the end of a connection without a handshake', 60_000);
    expect((await ask(gateway)).status).toBe(200);
  });
});

describe('clientCa', () => {
  let gateway: InProcess;
  const MUTUAL = { clientCa: client.certFile };
  beforeAll(async () => {
    gateway = await start(MUTUAL, { admin: listener(MUTUAL) });
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    '%s: only a client with a certificate of it gets an answer',
    async (version) => {
      const before = upstream.seen.length;
      const options = { ...TRUST, minVersion: version, maxVersion: version };
      await expect(ask(gateway, options)).rejects.toThrow();
      await expect(ask(gateway, { ...options, cert: stranger.cert, key: stranger.key })).rejects.toThrow();
      expect(upstream.seen).toHaveLength(before);
      expect((await ask(gateway, { ...options, cert: client.cert, key: client.key })).status).toBe(200);
    },
  );

  it('is in force on the admin listener too', async () => {
    const scrape = (tls: ConnectionOptions) => send(gateway.adminPort, { path: '/metrics', tls });
    await expect(scrape(TRUST)).rejects.toThrow();
    const { status, text } = await scrape({ ...TRUST, cert: client.cert, key: client.key });
    expect(status).toBe(200);
    expect(text).toMatch(/expiry_timestamp_seconds\{listener="admin"\} \d/);
  });

  it('the log says what is wrong with the certificate of a client', async () => {
    const failures = () => gateway.lines().filter(({ msg }) => msg === 'TLS handshake failed');
    const count = failures().length;
    await expect(ask(gateway, { ...TRUST, cert: stranger.cert, key: stranger.key })).rejects.toThrow();
    await eventually(() => failures().length > count, 'the line of the failure');
    expect(failures().at(-1)).toMatchObject({ level: 30, cause: expect.stringMatching(/CERT|SIGNATURE/) });
  });
});

describe('new TLS files', () => {
  /** What a reload with this `listen.tls` says; undefined for a listener without TLS. */
  const reload = async ({ gateway }: InProcess, tls: object | undefined) => {
    const anyPort = { host: '127.0.0.1', port: 0 };
    const listen = { ...anyPort, ...(tls && { tls }) };
    return gateway.reload(checkConfig(configOf(upstream.url, { listen, admin: anyPort }), 'test'));
  };
  const APPLIED = { changed: ['listen.tls'], needsRestart: [] };
  const KEPT = { changed: [], needsRestart: ['listen.tls'] };
  const NEXT = { cert: next.certFile, key: next.keyFile };

  it('are used from the next handshake on, and open connections live on', async () => {
    const gateway = await start();
    const open = await openRaw(gateway.port, TRUST);
    open.write(rawRequest('GET', OPEN, KEY));
    await open.waitFor(1);
    expect(await reload(gateway, NEXT)).toEqual(APPLIED);
    await expect(ask(gateway)).rejects.toThrow(/certificate/);
    expect((await ask(gateway, { ca: next.cert })).status).toBe(200);
    open.write(rawRequest('GET', OPEN, KEY));
    expect((await open.waitFor(2)).map(({ status }) => status)).toEqual([200, 200]);
    open.destroy();
    const [, seconds] = /expiry_timestamp_seconds\{listener="listen"\} (\S+)/.exec(await gateway.metrics()) ?? [];
    expect(Number(seconds) - Date.now() / 1_000).toBeGreaterThan(4 * DAY_S);
    await gateway.stop();
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    '%s: a client of a removed authority does not come back with its session',
    async (version) => {
      const gateway = await start({ clientCa: client.certFile });
      const options = { cert: client.cert, key: client.key, minVersion: version, maxVersion: version };
      const first = await handshake(gateway.port, options);
      const session = first.getSession() as Buffer;
      first.destroy();
      const again = await handshake(gateway.port, { ...options, session });
      expect(again.isSessionReused()).toBe(true);
      const newest = again.getSession() as Buffer;
      again.destroy();
      expect(await reload(gateway, { ...TLS, clientCa: stranger.certFile })).toEqual(APPLIED);
      for (const old of [session, newest]) {
        await expect(handshake(gateway.port, { ...options, session: old })).rejects.toThrow();
      }
      await gateway.stop();
    },
  );

  it('cannot turn TLS, or certificates of clients, on or off: that needs a restart', async () => {
    const gateway = await start();
    expect(await reload(gateway, { ...NEXT, clientCa: client.certFile })).toEqual(KEPT);
    expect(await reload(gateway, undefined)).toEqual(KEPT);
    expect((await ask(gateway)).status).toBe(200);
    await gateway.stop();
    const plain = await startInProcess(configOf(upstream.url));
    expect(await reload(plain, TLS)).toEqual(KEPT);
    expect(await reload(plain, undefined)).toEqual({ changed: ['listen.tls'], needsRestart: [] });
    await plain.stop();
  });
});

describe('connections', () => {
  const gauge = async (gateway: InProcess, name: string) =>
    Number(new RegExp(`^headgate_${name} (.*)$`, 'm').exec(await gateway.metrics())?.[1]);

  it('past maxConnections, handshakes that never end give way, and a connection with a request stays', async () => {
    const gateway = await start({}, { maxConnections: 3 });
    const busy = await openRaw(gateway.port, TRUST);
    upstream.behave(async (_seen, response) => {
      await pause(50);
      response.end('late');
    });
    const idle = Array.from({ length: 4 }, () => connectTcp({ host: '127.0.0.1', port: gateway.port }));
    let closed = 0;
    for (const socket of idle) socket.on('error', () => {}).on('close', () => closed++);
    busy.write(rawRequest('GET', OPEN, KEY));
    await eventually(() => closed > 0, 'the end of a handshake');
    const [reply] = await Promise.race([busy.waitFor(1), busy.closed.then(() => busy.replies())]);
    // The busy connection may have been the one that was idle for the longest time, if its request came later.
    if (reply !== undefined) expect(reply.text).toBe('late');
    await eventually(async () => (await gauge(gateway, 'connections')) <= 3, 'at most three connections');
    for (const socket of idle) socket.destroy();
    busy.destroy();
    await eventually(async () => (await gauge(gateway, 'connections')) === 0, 'the end of all');
    expect((await ask(gateway)).status).toBe(200);
    await gateway.stop();
  });

  it('an idle connection gives way to a new one, and is not counted twice', async () => {
    const gateway = await start({}, { maxConnections: 2 });
    const open = [await openRaw(gateway.port, TRUST), await openRaw(gateway.port, TRUST)];
    for (const each of open) {
      each.write(rawRequest('GET', OPEN, KEY));
      await each.waitFor(1);
    }
    expect(await gauge(gateway, 'connections')).toBe(2);
    const third = await openRaw(gateway.port, TRUST);
    await open[0]?.closed;
    third.write(rawRequest('GET', OPEN, KEY));
    open[1]?.write(rawRequest('GET', OPEN, KEY));
    expect((await third.waitFor(1))[0]?.status).toBe(200);
    expect(await open[1]?.waitFor(2)).toHaveLength(2);
    expect(await gauge(gateway, 'connections')).toBe(2);
    third.destroy();
    open[1]?.destroy();
    await eventually(async () => (await gauge(gateway, 'connections')) === 0, 'the end of all');
    await gateway.stop();
  });

  it('a client that reads slowly, but reads, gets all of its answer; one that does not read is cut', async () => {
    const size = 12_000_000;
    const gateway = await start({}, { clientTimeoutMs: 1_000 });
    upstream.behave(answer({ body: 'x'.repeat(size) }));
    const read = async (isReading: boolean) => {
      const { socket, write } = await openRaw(gateway.port, TRUST);
      let bytes = 0;
      let isOver = false;
      socket.on('close', () => {
        isOver = true;
      });
      socket.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      socket.pause();
      write(rawRequest('GET', OPEN, KEY));
      // Several times as long as the time-out, in steps that are shorter than it.
      for (let i = 0; i < 30 && !isOver; i++) {
        await pause(100);
        if (!isReading) continue;
        socket.resume();
        await pause(2);
        socket.pause();
      }
      socket.resume();
      await eventually(() => isOver || bytes > size, 'the answer, or its end');
      socket.destroy();
      return bytes > size;
    };
    expect(await read(true)).toBe(true);
    expect(await read(false)).toBe(false);
    await gateway.stop();
  });
});
