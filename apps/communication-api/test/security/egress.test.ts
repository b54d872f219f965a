import { Resolver } from 'node:dns/promises';
import { setTimeout as delay, setImmediate } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { Agent } from 'undici';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Egress, type EgressOptions } from '../../src/security/egress.ts';
import { EgressPolicy, type Purpose } from '../../src/security/egress-policy.ts';
import { EgressError, type Net, readBounded } from '../../src/security/net.ts';
import { cleanUpLater } from '../support/clean-up.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { readUntil, startEcho, startHttp, startHttps, startRaw, startTlsEcho } from '../support/outside-servers.ts';

const MINUTE = 60_000;
const soon = () => AbortSignal.timeout(MINUTE);

/** A direct way out. It is closed after the test file. */
function egress(options: Partial<EgressOptions> = {}): Net {
  const made = new Egress({ policy: 'off', ...options });
  cleanUpLater(() => made.close());
  return made.through(undefined);
}

/** Why a connection was not made. */
async function failureOf(attempt: Promise<unknown>): Promise<string> {
  const error = await attempt.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof EgressError)) throw new Error('This is no EgressError.', { cause: error });
  // An answer may show the message, so it must not name what the attacker asks for.
  expect(error.message).not.toMatch(/\d/);
  return error.failure;
}

const answering = (records: Readonly<Record<string, readonly string[]>>) => async (name: string) => records[name] ?? [];

afterEach(() => void vi.useRealTimers());

describe('a connection', () => {
  test('carries what both sides send, also what the server says first', async () => {
    const server = await startEcho();
    const socket = await egress().connect({ host: '127.0.0.1', port: server.port, tls: false }, soon());
    await delay(20);
    expect(await readUntil(socket, '\n')).toBe('hello\r\n');
    socket.write('again\n');
    expect(await readUntil(socket, '\n')).toBe('AGAIN\n');
    socket.destroy();
  });

  test('with TLS names the host, which the certificate must have; an address is not named', async () => {
    const names: unknown[] = [];
    const { port } = await startTlsEcho((socket) =>
      names.push([(socket as { servername?: unknown }).servername, socket.alpnProtocol]),
    );
    const net = egress({ lookup: answering({ 'mail.example.test': ['127.0.0.1'], 'mail.other.test': ['127.0.0.1'] }) });
    for (const host of ['mail.example.test', 'MAIL.example.test.', '127.0.0.1']) {
      const socket = await net.connect({ host, port, tls: true }, soon());
      expect(await readUntil(socket, '\n')).toBe('hello\r\n');
      socket.destroy();
    }
    expect(names).toEqual([
      ['mail.example.test', false],
      ['mail.example.test', false],
      [false, false],
    ]);
    expect(await failureOf(net.connect({ host: 'mail.other.test', port, tls: true }, soon()))).toBe('tls');
  });

  test('that cannot be made says why', async () => {
    const plain = await startEcho();
    const closed = await startEcho();
    const cut = await startRaw((socket) => void socket.destroy());
    const lookup = async (name: string) => {
      if (name === 'broken.test') throw new Error('ENOTFOUND');
      return [];
    };
    const net = egress({ lookup });
    const to = (host: string, port: number, tls = false) => failureOf(net.connect({ host, port, tls }, soon()));
    expect(closed.port).not.toBe(1);
    expect({
      nothing: await to('127.0.0.1', 1),
      'no TLS': await to('127.0.0.1', plain.port, true),
      cut: await to('127.0.0.1', cut.port, true),
      'no address': await to('empty.test', 25),
      'look-up failed': await to('broken.test', 25),
      'no name': await to('a b', 25),
    }).toEqual({
      nothing: 'refused',
      'no TLS': 'tls',
      cut: 'tls',
      'no address': 'unresolved',
      'look-up failed': 'unresolved',
      'no name': 'unresolved',
    });
  });

  test('ends with the signal of its caller: in the look-up, in TLS, and before it began', async () => {
    let closed = 0;
    const silent = await startRaw((socket) => void socket.resume().once('close', () => closed++));
    const net = egress({
      lookup: (name) => (name === 'slow.test' ? new Promise(() => undefined) : Promise.resolve(['127.0.0.1'])),
    });
    for (const host of ['slow.test', 'fast.test']) {
      const caller = new AbortController();
      const attempt = failureOf(net.connect({ host, port: silent.port, tls: true }, caller.signal));
      if (host === 'fast.test') while (silent.connections === 0) await setImmediate();
      else await delay(50);
      caller.abort();
      expect(await attempt).toBe('timeout');
    }
    const { connections } = silent;
    expect(
      await failureOf(net.connect({ host: 'fast.test', port: silent.port, tls: false }, AbortSignal.abort())),
    ).toBe('timeout');
    expect(silent.connections).toBe(connections);
    // Nothing stays open.
    while (closed < connections) await setImmediate();
  });

  test('takes 10 seconds at most, also one of fetch', async () => {
    const silent = await startRaw(() => undefined);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const net = egress();
    const attempts = [
      net.connect({ host: '127.0.0.1', port: silent.port, tls: true }, new AbortController().signal),
      net.fetch(`https://127.0.0.1:${silent.port}/`),
    ].map(failureOf);
    while (silent.connections < 2) await setImmediate();
    await vi.advanceTimersByTimeAsync(9_999);
    const pending = Symbol('pending');
    expect(await Promise.race([...attempts, Promise.resolve(pending)])).toBe(pending);
    await vi.advanceTimersByTimeAsync(1);
    expect(await Promise.all(attempts)).toEqual(['timeout', 'timeout']);
  });

  test('is made to the next address if one does not answer', async () => {
    const server = await startEcho('second\n', '127.0.0.2');
    const net = egress({ lookup: answering({ 'two.test': ['127.0.0.3', '127.0.0.2'] }) });
    const socket = await net.connect({ host: 'two.test', port: server.port, tls: false }, soon());
    expect(await readUntil(socket, '\n')).toBe('second\n');
    socket.destroy();
  });

  test('that breaks before anyone listens does not end the process', async () => {
    const server = await startRaw((socket) => void setTimeout(() => socket.resetAndDestroy(), 5));
    const socket = await egress().connect({ host: '127.0.0.1', port: server.port, tls: false }, soon());
    // It may be closed already.
    if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
    expect(socket.destroyed).toBe(true);
  });
});

describe('the policy', () => {
  const HOSTS = {
    'public.test': ['192.31.196.1'],
    'private.test': ['10.0.0.1'],
    'loopback.test': ['127.0.0.1'],
    'metadata.test': ['169.254.169.254'],
    'metadata6.test': ['fd00:ec2::254'],
    'local.test': ['fe80::1'],
    'mapped.test': ['::ffff:127.0.0.1'],
    'nat64.test': ['64:ff9b::a9fe:a9fe'],
    'zero.test': ['0.0.0.0'],
    'multicast.test': ['224.0.0.1'],
    'broadcast.test': ['255.255.255.255'],
    // One bad address is enough: the next look-up could give that one alone.
    'both.test': ['192.31.196.1', '169.254.169.254'],
    'public-and-private.test': ['192.31.196.1', '10.0.0.1'],
    'nonsense.test': ['not an address'],
  };

  test.each([
    ['public', ['public.test']],
    ['link-local', ['public.test', 'private.test', 'loopback.test', 'mapped.test', 'public-and-private.test']],
    ['off', Object.keys(HOSTS)],
  ] as const)('%s: judges every address of a host', async (name, allowed) => {
    const policy = new EgressPolicy(name, [], answering(HOSTS));
    const isAllowed = (host: string) =>
      policy.judge(host, 465, 'mail').then(
        ({ addresses }) => addresses === HOSTS[host as keyof typeof HOSTS],
        ({ failure }: EgressError) => failure !== 'forbidden',
      );
    const names = await Promise.all(Object.keys(HOSTS).map(async (host) => ((await isAllowed(host)) ? host : '')));
    expect(names.filter(Boolean)).toEqual(allowed);
  });

  test.each([
    [
      'public',
      {
        mail: [25, 143, 465, 587, 993, 1143, 2525],
        web: [443, 1143],
        proxy: [80, 443, 1080, 1143, 2525, 3128, 5432, 6379, 65535],
      },
    ],
    [
      'link-local',
      {
        mail: [25, 143, 465, 587, 993, 1143, 2525],
        web: [80, 443, 1080, 1143, 2525, 3128, 5432, 6379, 65535],
        proxy: [80, 443, 1080, 1143, 2525, 3128, 5432, 6379, 65535],
      },
    ],
    ['off', undefined],
  ] as const)('%s: has ports for each purpose, and those that the operator adds', async (name, expected) => {
    const policy = new EgressPolicy(name, [1143], answering({}));
    const ports = [1, 22, 25, 80, 110, 143, 443, 465, 587, 993, 1080, 1143, 2525, 3128, 5432, 6379, 65535];
    const allowed = async (purpose: Purpose) => {
      const judged = await Promise.allSettled(ports.map((port) => policy.judge('1.1.1.1', port, purpose)));
      return ports.filter((_, index) => judged[index]?.status === 'fulfilled');
    };
    const found = { mail: await allowed('mail'), web: await allowed('web'), proxy: await allowed('proxy') };
    expect(found).toEqual(expected ?? { mail: ports, web: ports, proxy: ports });
    for (const port of [0, -1, 65_536, 1.5, Number.NaN])
      expect(await failureOf(policy.judge('1.1.1.1', port, 'proxy'))).toBe('forbidden');
  });

  /** Spellings of this machine and of metadata services, as an attacker would try them. The system looks them up. */
  const SPELLINGS = [
    ...[
      '127.0.0.1',
      '127.1',
      '127.0.1',
      '0x7f.1',
      '0x7f000001',
      '2130706433',
      '017700000001',
      '0177.0.0.01',
      '0',
      '0.0.0.0',
    ],
    ...['127.0.0.1.', '127.127.127.127', '１２７.0.0.1', '127。0。0。1', '①②⑦.⓪.⓪.①', '0x7F.0X0.0.1', '00000177.1'],
    ...['localhost', 'LOCALHOST', 'localhost.', 'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ', 'ip6-localhost', 'a.localhost'],
    ...[
      '[::1]',
      '[0:0:0:0:0:0:0:1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[0:0:0:0:0:FFFF:7F00:0001]',
      '[::127.0.0.1]',
    ],
    ...['[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[::ffff:0:127.0.0.1]', '[64:ff9b:1::7f00:1]'],
    ...['169.254.169.254', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '[::ffff:a9fe:a9fe]', '[fd00:ec2::254]'],
    ...['[64:ff9b::a9fe:a9fe]', '[2002:a9fe:a9fe::1]', '100.100.100.200', '168.63.129.16', '192.0.0.192'],
    ...['10.0.0.1', '172.16.0.1', '192.168.1.1', '[fc00::1]', '[fd12::1]', '[fe80::1]', '[fec0::1]', '[ff02::1]'],
    ...['224.0.0.1', '255.255.255.255', '240.0.0.1', '100.64.0.1', '198.18.0.1', '203.0.113.1'],
  ];

  test('public: no spelling reaches this machine, by connect or by fetch', async () => {
    const server = await startHttp((_request, response) => void response.end('secret'));
    const net = egress({ policy: 'public', ports: [server.port] });
    for (const spelling of SPELLINGS) {
      const host = spelling.replace(/^\[|\]$/g, '');
      const failures = await Promise.all([
        failureOf(net.connect({ host, port: server.port, tls: false }, soon())),
        failureOf(net.connect({ host: spelling, port: server.port, tls: false }, soon())),
        failureOf(net.fetch(`http://${spelling}:${server.port}/`)),
      ]);
      for (const failure of failures) expect(['forbidden', 'unresolved'], spelling).toContain(failure);
    }
    for (const zone of ['fe80::1%lo', 'fe80::1%1', '::1%lo', '[fe80::1%25lo]'])
      expect(await failureOf(net.connect({ host: zone, port: server.port, tls: false }, soon()))).toBe('forbidden');
    expect(server.connections).toBe(0);
  });

  test('link-local: neither 0.0.0.0 nor a link-local address is this machine', async () => {
    const server = await startEcho('hello\n', '0.0.0.0');
    const net = egress({ policy: 'link-local', ports: [server.port] });
    for (const host of ['0.0.0.0', '0', '::', '::ffff:0.0.0.0', '169.254.1.1', 'fe80::1', '::127.0.0.1'])
      expect(await failureOf(net.connect({ host, port: server.port, tls: false }, soon())), host).toBe('forbidden');
    expect(server.connections).toBe(0);
    const socket = await net.connect({ host: '127.1', port: server.port, tls: false }, soon());
    expect(await readUntil(socket, '\n')).toBe('hello\n');
    socket.destroy();
  });

  test('a name that leads elsewhere at the next look-up is looked up once: the judged address is connected to', async () => {
    const judged = await startHttp((_request, response) => void response.end('judged'));
    const other = await startRaw(() => undefined, '127.0.0.2');
    const dns = await startDnsServer();
    const resolver = new Resolver();
    resolver.setServers([dns.address]);
    let lookups = 0;
    const lookup = async (name: string) => {
      dns.records = { 'A rebind.test': [lookups === 0 ? '127.0.0.1' : '169.254.169.254'] };
      lookups += 1;
      return resolver.resolve4(name);
    };
    const net = egress({ policy: 'link-local', ports: [judged.port], lookup });
    const answer = await net.fetch(`http://rebind.test:${judged.port}/`);
    expect(await answer.text()).toBe('judged');
    expect(dns.queries).toEqual(['A rebind.test']);
    // A new connection looks it up again, and is refused.
    expect(await failureOf(net.connect({ host: 'rebind.test', port: judged.port, tls: false }, soon()))).toBe(
      'forbidden',
    );
    expect({ lookups, other: other.connections }).toEqual({ lookups: 2, other: 0 });
  });
});

describe('fetch', () => {
  test('sends a request and returns the answer of Node: TLS, a body both ways, and connections that are used again', async () => {
    const server = await startHttps((request, response) => {
      response.setHeader('x-method', String(request.method));
      request.pipe(response);
    });
    const net = egress({ lookup: answering({ 'api.example.test': ['127.0.0.1'] }) });
    const url = `https://api.example.test:${server.port}/`;
    const answer = await net.fetch(url, { method: 'POST', body: JSON.stringify({ a: 1 }) });
    expect(answer).toBeInstanceOf(Response);
    expect({ status: answer.status, method: answer.headers.get('x-method'), body: await answer.json() }).toEqual({
      status: 200,
      method: 'POST',
      body: { a: 1 },
    });
    const streamed = await net.fetch(new URL(url), {
      method: 'PUT',
      body: new Blob(['streamed']).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(await streamed.text()).toBe('streamed');
    for (let i = 0; i < 4; i++) await (await net.fetch(url)).text();
    // A connection is free again a moment after its answer was read.
    expect(server.connections).toBeLessThan(3);
  });

  test('follows no redirect, even if the caller asks for it', async () => {
    const target = await startHttp((_request, response) => void response.end('secret'));
    const server = await startHttp((_request, response) => {
      response.writeHead(307, { location: `http://127.0.0.1:${target.port}/` }).end();
    });
    for (const redirect of ['follow', 'manual', undefined] as const) {
      const init = redirect === undefined ? {} : { redirect };
      const answer = await egress().fetch(`http://127.0.0.1:${server.port}/`, init);
      expect([answer.status, answer.headers.get('location')]).toEqual([307, `http://127.0.0.1:${target.port}/`]);
    }
    expect(target.connections).toBe(0);
  });

  test.each([
    ...['data:text/plain,secret', 'blob:nodedata:1', 'file:///etc/passwd', 'ftp://127.0.0.1/', 'about:blank'],
    // `fetch` itself blocks these ports.
    ...['http://127.0.0.1:25/', 'http://127.0.0.1:6000/'],
  ])('refuses %s', async (url) => expect(await failureOf(egress().fetch(url))).toBe('forbidden'));

  test('uses its own way out, whatever dispatcher the caller passes', async () => {
    const server = await startHttp((_request, response) => void response.end('secret'));
    const net = egress({ policy: 'public', ports: [server.port] });
    const init = { dispatcher: new Agent() } as unknown as RequestInit;
    expect(await failureOf(net.fetch(`http://127.0.0.1:${server.port}/`, init))).toBe('forbidden');
    expect(server.connections).toBe(0);
  });

  test('throws what fetch throws after the connection was made, and ends with its signal', async () => {
    const cut = await startRaw((socket) => void socket.once('data', () => socket.destroy()));
    await expect(egress().fetch(`http://127.0.0.1:${cut.port}/`)).rejects.toThrow(TypeError);
    const silent = await startRaw(() => undefined);
    const signal = AbortSignal.timeout(100);
    await expect(egress().fetch(`http://127.0.0.1:${silent.port}/`, { signal })).rejects.toThrow(
      'aborted due to timeout',
    );
  });

  test('reads a body up to a bound, also a compressed one, and ends the connection then', async () => {
    const server = await startHttp((request, response) => {
      if (request.url === '/short') return void response.end('short');
      if (request.url === '/empty') return void response.writeHead(204).end();
      // Grows to 100 MB.
      response.setHeader('content-encoding', 'gzip');
      const gzip = createGzip();
      gzip.pipe(response);
      gzip.end(Buffer.alloc(100 * 2 ** 20));
    });
    const net = egress();
    const read = async (path: string) => readBounded(await net.fetch(`http://127.0.0.1:${server.port}${path}`), 1_000);
    expect(await read('/short')).toEqual({ bytes: Buffer.from('short'), isCut: false });
    expect(await read('/empty')).toEqual({ bytes: Buffer.alloc(0), isCut: false });
    expect(await read('/bomb')).toEqual({ bytes: Buffer.alloc(1_000), isCut: true });
  });
});
