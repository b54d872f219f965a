import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { inspect } from 'node:util';
import { until } from 'headgate-testbed/redis-server';
import { beforeAll, describe, expect, test } from 'vitest';
import type { CustomProxy } from '../../src/domain/proxy.ts';
import { Egress, type EgressOptions } from '../../src/security/egress.ts';
import { EgressError, type Net } from '../../src/security/net.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { readUntil, startEcho, startHttp, startHttps, startRaw, startTlsEcho } from '../support/outside-servers.ts';
import { startDante, startMicrosocks, startTinyproxy, startTlsFront } from '../support/proxy-servers.ts';
import { secret } from '../support/secret.ts';

const CREDENTIALS = { username: 'ann', password: secret() };
const soon = () => AbortSignal.timeout(20_000);

const proxies: Record<string, CustomProxy> = {};

beforeAll(async () => {
  const host = '127.0.0.1';
  const [http, socks, dante] = await Promise.all([
    startTinyproxy(CREDENTIALS),
    startMicrosocks(CREDENTIALS),
    startDante(),
  ]);
  proxies.http = { protocol: 'http', host, port: http, ...CREDENTIALS };
  proxies.https = { protocol: 'https', host: 'proxy.example.test', port: await startTlsFront(http), ...CREDENTIALS };
  proxies.socks5 = { protocol: 'socks5', host, port: socks, ...CREDENTIALS };
  proxies['socks5 without a password'] = { protocol: 'socks5', host, port: dante };
  proxies.socks4 = { protocol: 'socks4', host, port: dante };
  proxies['socks4 with a user'] = { protocol: 'socks4', host, port: dante, username: 'ann' };
});

const KINDS = ['http', 'https', 'socks5', 'socks5 without a password', 'socks4', 'socks4 with a user'];

const lookup = async (): Promise<readonly string[]> => ['127.0.0.1'];

function through(proxy: CustomProxy | undefined, options: Partial<EgressOptions> = {}): Net {
  const egress = new Egress({ policy: 'off', lookup, ...options });
  cleanUpLater(() => egress.close());
  return egress.through(proxy);
}

async function errorOf(attempt: Promise<unknown>): Promise<EgressError> {
  const error = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof EgressError)) throw new Error('This is no EgressError.', { cause: error });
  return error;
}
const failureOf = async (attempt: Promise<unknown>): Promise<string> => (await errorOf(attempt)).failure;

describe.each(KINDS)('through a real proxy: %s', (kind) => {
  test('what the server says first arrives, also when the caller reads late', async () => {
    const { port } = await startEcho('220 ready\r\n');
    const socket = await through(proxies[kind]).connect({ host: 'mail.example.test', port, tls: false }, soon());
    await delay(50);
    expect(await readUntil(socket, '\n')).toBe('220 ready\r\n');
    socket.write('again\n');
    expect(await readUntil(socket, '\n')).toBe('AGAIN\n');
    socket.destroy();
  });

  test('TLS is with the host behind the proxy, not with the proxy', async () => {
    const names: unknown[] = [];
    const { port } = await startTlsEcho((socket) => names.push((socket as { servername?: unknown }).servername));
    const net = through(proxies[kind]);
    const socket = await net.connect({ host: 'mail.example.test', port, tls: true }, soon());
    expect(await readUntil(socket, '\n')).toBe('hello\r\n');
    socket.destroy();
    expect(names).toEqual(['mail.example.test']);
    expect(await failureOf(net.connect({ host: 'mail.other.test', port, tls: true }, soon()))).toBe('tls');
  });

  test('fetch', async () => {
    const server = await startHttps((request, response) => void request.pipe(response));
    const net = through(proxies[kind]);
    for (const body of ['one', 'two'.repeat(100_000)]) {
      const answer = await net.fetch(`https://api.example.test:${server.port}/`, { method: 'POST', body });
      expect(await answer.text()).toBe(body);
    }
  });

  test('a host that refuses', async () => {
    const net = through(proxies[kind]);
    expect(await failureOf(net.connect({ host: '127.0.0.1', port: 1, tls: false }, soon()))).toBe('refused');
  });

  test('the addresses of the target and of the proxy are judged, before the proxy is connected to', async () => {
    const target = await startEcho();
    let connections = 0;
    const front = await startRaw(() => void connections++);
    const proxy = { ...proxies[kind], host: 'proxy.example.test', port: front.port } as CustomProxy;
    const addresses: Record<string, string> = {
      'proxy.example.test': '192.31.196.1',
      'mail.example.test': '192.31.196.1',
    };
    const net = through(proxy, {
      policy: 'public',
      ports: [target.port],
      lookup: async (name) => [addresses[name] ?? ''],
    });
    const attempt = (host: string) => failureOf(net.connect({ host, port: target.port, tls: false }, soon()));
    for (const host of ['127.0.0.1', '[::ffff:7f00:1]', '169.254.169.254', '0x7f.1', 'localhost'])
      expect(await attempt(host)).toBe('forbidden');
    addresses['proxy.example.test'] = '127.0.0.1';
    expect(await attempt('mail.example.test')).toBe('forbidden');
    expect([connections, target.connections]).toEqual([0, 0]);
  });
});

describe('a proxy that asks for a password', () => {
  test.each(['http', 'https', 'socks5'])('%s: a wrong one, or none, is an error of its own', async (kind) => {
    const { port } = await startEcho();
    const proxy = proxies[kind] as CustomProxy;
    const { username: _, password: __, ...without } = proxy;
    for (const wrong of [{ ...proxy, password: 'wrong' }, { ...proxy, username: 'bob' }, without]) {
      const attempts = [
        through(wrong).connect({ host: 'mail.example.test', port, tls: false }, soon()),
        through(wrong).fetch(`http://mail.example.test:${port}/`),
      ];
      expect(await Promise.all(attempts.map(failureOf))).toEqual(['proxy_credentials', 'proxy_credentials']);
    }
  });

  test('a connection that one password has opened is not given to another one', async () => {
    const server = await startHttp((_request, response) => void response.end('secret'));
    const egress = new Egress({ policy: 'off', lookup });
    cleanUpLater(() => egress.close());
    const url = `http://api.example.test:${server.port}/`;
    const proxy = proxies.http as CustomProxy;
    expect(await (await egress.through(proxy).fetch(url)).text()).toBe('secret');
    expect(await (await egress.through({ ...proxy }).fetch(url)).text()).toBe('secret');
    expect(server.connections).toBeLessThan(3);
    expect(await failureOf(egress.through({ ...proxy, password: 'wrong' }).fetch(url))).toBe('proxy_credentials');
  });

  test('a password that is too long, or that could be a command for something else that listens there, is not sent', async () => {
    const received: Buffer[] = [];
    const other = await startRaw((socket) => void socket.on('data', (chunk: Buffer) => received.push(chunk)));
    for (const protocol of ['socks4', 'socks5'] as const)
      for (const text of ['a\r\nFLUSHALL\r\n', 'a\0b', 'a\nb', 'ä'.repeat(128)]) {
        const proxy = { protocol, host: '127.0.0.1', port: other.port, username: text, password: text };
        const attempt = through(proxy).connect({ host: '127.0.0.1', port: 25, tls: false }, soon());
        expect(await failureOf(attempt)).toBe('proxy_credentials');
      }
    expect(Buffer.concat(received).length).toBe(0);
  });

  test('no error has the password', async () => {
    const password = secret();
    for (const protocol of ['http', 'https', 'socks4', 'socks5'] as const) {
      const front = await startRaw((socket) => void socket.once('data', () => socket.end('no')));
      const proxy = { protocol, host: '127.0.0.1', port: front.port, username: password, password };
      const error = await errorOf(through(proxy).connect({ host: '127.0.0.1', port: 25, tls: false }, soon()));
      const shown = inspect(error, { depth: 10, showHidden: true });
      expect(shown).not.toContain(password);
      expect(shown).not.toContain(Buffer.from(`${password}:${password}`).toString('base64'));
    }
  });
});

describe('what a proxy is asked', () => {
  /** Answers the first bytes of each connection, and notes them. */
  async function scripted(reply: (socket: Socket, first: Buffer) => void) {
    const asked: Buffer[] = [];
    const { port } = await startRaw((socket) => {
      socket.once('data', (chunk: Buffer) => {
        asked.push(chunk);
        reply(socket, chunk);
      });
    });
    return { asked, port };
  }
  const addresses = ['2606:4700::1111', '192.31.196.1'];

  test('http: CONNECT with a judged address, never the name', async () => {
    const { asked, port } = await scripted(
      (socket) => void socket.write('HTTP/1.1 200 Connection established\r\n\r\n220 hi\r\n'),
    );
    const proxy = { protocol: 'http', host: '127.0.0.1', port, username: 'ä:b', password: 'c%\n' } as const;
    const net = through(proxy, { lookup: async () => addresses });
    const socket = await net.connect({ host: 'mail.example.test', port: 25, tls: false }, soon());
    // The proxy has sent both at once.
    expect(await readUntil(socket, '\n')).toBe('220 hi\r\n');
    socket.destroy();
    const text = String(asked[0]);
    expect(text).toMatch(/^CONNECT 192\.31\.196\.1:25 HTTP\/1\.1\r\nhost: 192\.31\.196\.1:25\r\n/i);
    expect(text).toContain(`${Buffer.from('ä:b:c%\n').toString('base64')}\r\n`);
    expect(text).not.toContain('example');
  });

  test('http: an IPv6 address is in brackets', async () => {
    const { asked, port } = await scripted((socket) => void socket.write('HTTP/1.0 200 OK\r\n\r\n'));
    const net = through({ protocol: 'http', host: '127.0.0.1', port }, { lookup: async () => ['2606:4700::1111'] });
    (await net.connect({ host: 'mail.example.test', port: 25, tls: false }, soon())).destroy();
    expect(String(asked[0])).toMatch(/^CONNECT \[2606:4700::1111\]:25 HTTP/);
  });

  test('socks5 and socks4: a judged address, and what comes with the answer is kept', async () => {
    const five = await scripted((socket) => {
      socket.write(Buffer.of(5, 0));
      socket.once('data', (chunk: Buffer) => {
        five.asked.push(chunk);
        socket.write(Buffer.concat([Buffer.of(5, 0, 0, 1, 0, 0, 0, 0, 0, 0), Buffer.from('220 five\r\n')]));
      });
    });
    const four = await scripted(
      (socket) => void socket.write(Buffer.concat([Buffer.of(0, 90, 0, 0, 0, 0, 0, 0), Buffer.from('220 four\r\n')])),
    );
    for (const [protocol, port] of [
      ['socks5', five.port],
      ['socks4', four.port],
    ] as const) {
      const net = through({ protocol, host: '127.0.0.1', port, username: 'ann' }, { lookup: async () => addresses });
      const socket = await net.connect({ host: 'mail.example.test', port: 25, tls: false }, soon());
      await delay(20);
      expect(await readUntil(socket, '\n')).toMatch(/^220 (five|four)\r\n$/);
      socket.destroy();
    }
    expect(five.asked[1]).toEqual(Buffer.of(5, 1, 0, 1, 192, 31, 196, 1, 0, 25));
    expect(four.asked[0]).toEqual(Buffer.concat([Buffer.of(4, 1, 0, 25, 192, 31, 196, 1), Buffer.from('ann\0')]));
    const six = through(
      { protocol: 'socks4', host: '127.0.0.1', port: four.port },
      { lookup: async () => ['2606:4700::1111'] },
    );
    expect(await failureOf(six.connect({ host: 'mail.example.test', port: 25, tls: false }, soon()))).toBe('refused');
  });

  test('a proxy that answers something else, nothing, or ends', async () => {
    const replies: Readonly<Record<string, (socket: Socket) => void>> = {
      end: (socket) => void socket.end(),
      reset: (socket) => void socket.resetAndDestroy(),
      nonsense: (socket) => void socket.end('220 smtp.example ready\r\n'),
      '403': (socket) => void socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'),
      '302': (socket) => void socket.end('HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\n\r\n'),
      'endless header': (socket) => {
        socket.on('error', () => undefined);
        socket.write('HTTP/1.1 200 OK\r\nx: ');
        const more = (): void => void (socket.writable && socket.write('a'.repeat(65_536), () => setImmediate(more)));
        more();
      },
      '101': (socket) =>
        void socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
      '100 only': (socket) => void socket.end('HTTP/1.1 100 Continue\r\n\r\n'),
      'SOCKS 5, method unknown': (socket) => void socket.end(Buffer.of(5, 77)),
      'SOCKS 4, rejected': (socket) => void socket.end(Buffer.of(0, 91, 0, 0, 0, 0, 0, 0)),
    };
    for (const reply of Object.values(replies)) {
      const { port } = await scripted(reply);
      for (const protocol of ['http', 'https', 'socks4', 'socks5'] as const) {
        const net = through({ protocol, host: '127.0.0.1', port });
        const failure = await failureOf(net.connect({ host: '127.0.0.1', port: 25, tls: false }, soon()));
        expect(failure).toBe(protocol === 'https' ? 'tls' : 'refused');
      }
    }
    const closed: Promise<unknown>[] = [];
    const silent = await startRaw(
      (socket) => void closed.push(new Promise((resolve) => socket.resume().once('close', resolve))),
    );
    for (const protocol of ['http', 'https', 'socks4', 'socks5'] as const) {
      const net = through({ protocol, host: '127.0.0.1', port: silent.port });
      const [caller, { connections }] = [new AbortController(), silent];
      const failure = failureOf(net.connect({ host: '127.0.0.1', port: 25, tls: false }, caller.signal));
      await until(() => silent.connections > connections, 'the proxy is connected to');
      caller.abort();
      expect(await failure).toBe('timeout');
    }
    await Promise.all(closed);
    expect(closed).toHaveLength(4);
  });

  test('an answer to CONNECT has no body: what follows is from the server', async () => {
    const heads = [
      'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
    ];
    for (const head of heads) {
      const { port } = await scripted((socket) => void socket.write(`${head}220 ready\r\n`));
      const net = through({ protocol: 'http', host: '127.0.0.1', port });
      const socket = await net.connect({ host: '127.0.0.1', port: 25, tls: false }, soon());
      expect(await readUntil(socket, '\n')).toBe('220 ready\r\n');
      socket.destroy();
    }
  });

  test('the connection to a proxy that refuses is closed', async () => {
    const closed: Promise<unknown>[] = [];
    const { port } = await startRaw((socket) => {
      closed.push(once(socket, 'close'));
      socket.once('data', () => socket.write('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n'));
    });
    const net = through({ protocol: 'http', host: '127.0.0.1', port });
    expect(await failureOf(net.connect({ host: '127.0.0.1', port: 25, tls: false }, soon()))).toBe('refused');
    await Promise.all(closed);
    expect(closed).toHaveLength(1);
  });
});
