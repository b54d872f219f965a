import type { IncomingMessage, RequestListener } from 'node:http';
import { connect as tcp } from 'node:net';
import connect from 'connect';
import { type Listening, listen } from 'headgate-testbed/listen';
import { afterEach, describe, expect, it } from 'vitest';
import { headgate, passageOf, servedFromCache, withHeadgate } from '../../src/adapters/node.ts';
import { createGate, createLimiter, type GateOptions, type LimiterOptions } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

const open: Listening[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

function parts(allMethods: string[], options: Partial<GateOptions<IncomingMessage>> = {}) {
  const limits: LimiterOptions['limits'] = { allMethods };
  const limiter = createLimiter({ store: createMemoryStore(), limits });
  const gate = createGate<IncomingMessage>({
    limiter,
    account: (request) => request.headers['x-account'] as string | undefined,
    route: (request) => `${request.method} ${request.url}`,
    ...options,
  });
  return { limiter, gate };
}

async function serve(listener: RequestListener): Promise<string> {
  const listening = await listen(listener);
  open.push(listening);
  return listening.url;
}

const headers = { 'x-account': 'a' };
const fieldsOf = (response: Response) =>
  Object.fromEntries([...response.headers].filter(([name]) => /ratelimit|retry-after/.test(name)));

describe('headgate in front of node:http', () => {
  it('adds the fields of the decision, however the answer is written', async () => {
    const { gate } = parts(['100/1m']);
    const url = await serve(
      withHeadgate(gate, (request, response) => {
        if (request.url === '/end') return void response.end('ok');
        if (request.url === '/object')
          return void response.writeHead(201, { 'x-ratelimit-limit': '7', 'x-own': '1' }).end();
        if (request.url === '/array')
          return void response.writeHead(202, 'Fine', ['X-RateLimit-Limit', '7', 'x-own', '1']).end();
        response.setHeader('x-ratelimit-limit', '7');
        response.write('a');
        response.end('b');
      }),
    );
    for (const [path, status] of [
      ['/end', 200],
      ['/object', 201],
      ['/array', 202],
      ['/write', 200],
    ] as const) {
      const response = await fetch(url + path, { headers });
      expect([path, response.status]).toEqual([path, status]);
      expect(fieldsOf(response)).toEqual({
        'x-ratelimit-limit': '100',
        'x-ratelimit-remaining': '99',
        'x-ratelimit-reset': '60',
      });
      if (path === '/object' || path === '/array') expect(response.headers.get('x-own')).toBe('1');
    }
  });

  it('S6: adds fields to a head that is written with a reason alone, with pairs, or with undefined in between', async () => {
    const { gate } = parts(['100/1m']);
    const pairs = [
      ['x-own', '1'],
      ['X-RateLimit-Limit', '7'],
      ['set-cookie', 'a'],
      ['set-cookie', 'b'],
      ['set-cookie', 'c'],
    ];
    const url = await serve(
      withHeadgate(gate, (request, response) => {
        if (request.url === '/reason') return void response.writeHead(201, 'Well done').end();
        if (request.url === '/pairs') return void response.writeHead(202, pairs as never).end();
        response.writeHead(203, undefined, { 'x-own': '1', 'x-ratelimit-limit': '7' }).end();
      }),
    );
    const seen: Record<string, Response> = {};
    for (const path of ['/reason', '/pairs', '/undefined']) seen[path] = await fetch(url + path, { headers });
    for (const response of Object.values(seen)) {
      expect(fieldsOf(response)).toEqual({
        'x-ratelimit-limit': '100',
        'x-ratelimit-remaining': '99',
        'x-ratelimit-reset': '60',
      });
    }
    expect([seen['/reason']?.status, seen['/reason']?.statusText]).toEqual([201, 'Well done']);
    expect([seen['/pairs']?.status, seen['/pairs']?.headers.get('x-own')]).toEqual([202, '1']);
    expect(seen['/pairs']?.headers.getSetCookie()).toEqual(['a', 'b', 'c']);
    expect([seen['/undefined']?.status, seen['/undefined']?.headers.get('x-own')]).toEqual([203, '1']);
  });

  it('does not change rate-limit fields of the handler if the request is not limited', async () => {
    const { gate } = parts(['100/1m'], { onNoAccount: 'pass' });
    const url = await serve(
      withHeadgate(gate, (_, response) => void response.writeHead(200, { 'X-RateLimit-Limit': '7' }).end()),
    );
    expect(fieldsOf(await fetch(url))).toEqual({ 'x-ratelimit-limit': '7' });
  });

  it('answers 429 by itself; the handler does not run', async () => {
    let ran = 0;
    const { gate } = parts(['1/1m']);
    const url = await serve(withHeadgate(gate, (_, response) => void response.end(String(++ran))));
    await fetch(url, { headers });
    const rejected = await fetch(url, { headers });
    expect(rejected.status).toBe(429);
    expect(await rejected.json()).toMatchObject({ type: 'api/too_many_requests', status: 429 });
    expect(fieldsOf(rejected)).toMatchObject({ 'retry-after': '60', 'x-ratelimit-remaining': '0' });
    expect(ran).toBe(1);
  });

  it("S16: removes every rate-limit field but retry-after from the provider's own 429, however it was written", async () => {
    const { gate } = parts(['100/1m'], { providerAnswers: ({ header }) => header('Retry-After') === '9' });
    const url = await serve(
      withHeadgate(gate, (request, response) => {
        if (request.url === '/set') {
          response.setHeader('Retry-After', '9');
          response.statusCode = 429;
          return void response.end();
        }
        response
          .writeHead(
            429,
            request.url === '/object' ? { 'Retry-After': '9', 'x-own': '1' } : ['Retry-After', '9', 'x-own', '1'],
          )
          .end();
      }),
    );
    for (const path of ['/set', '/object', '/array']) {
      const response = await fetch(url + path, { headers });
      expect([response.status, fieldsOf(response)]).toEqual([429, { 'retry-after': '9' }]);
    }
  });

  it('S12: the charge of an answer from a cache, and of an abandoned passage, is refunded', async () => {
    const { gate, limiter } = parts(['5/1m']);
    const url = await serve(
      withHeadgate(gate, (request, response) => {
        if (request.url === '/cached') servedFromCache(response);
        else void passageOf(response)?.abandon();
        response.end();
      }),
    );
    for (const path of ['/cached', '/abandoned']) {
      await fetch(url + path, { headers });
      await expect.poll(async () => (await limiter.peek({ account: 'a', route: `GET ${path}` }))[0]?.remaining).toBe(5);
    }
  });

  it('S19: each of several pipelined requests gets its own count', async () => {
    const { gate } = parts(['3/1m']);
    const url = await serve(withHeadgate(gate, (_, response) => void response.end('ok')));
    const socket = tcp(Number(new URL(url).port), '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nx-account: a\r\n\r\n'.repeat(5));
    let text = '';
    for await (const chunk of socket) {
      text += chunk;
      if (text.split('HTTP/1.1 ').length === 6 && text.trimEnd().endsWith('}')) break;
    }
    expect([...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1])).toEqual([
      '200',
      '200',
      '200',
      '429',
      '429',
    ]);
    expect([...text.matchAll(/x-ratelimit-remaining: (\d+)/g)].map((match) => match[1])).toEqual([
      '2',
      '1',
      '0',
      '0',
      '0',
    ]);
  });

  it('lets exactly 100 of 500 parallel requests through a limit of 100', async () => {
    let ran = 0;
    const { gate } = parts(['100/1m']);
    const url = await serve(withHeadgate(gate, (_, response) => void response.end(String(++ran))));
    const statuses = await Promise.all(Array.from({ length: 500 }, async () => (await fetch(url, { headers })).status));
    expect(ran).toBe(100);
    expect(statuses.filter((status) => status === 429)).toHaveLength(400);
  });

  it('waits for resolvers, and does not answer if something else has answered meanwhile', async () => {
    const { gate } = parts(['1/1m'], { account: async (request) => request.headers['x-account'] as string });
    const url = await serve((request, response) => {
      withHeadgate(gate, (_, answer) => void answer.end('late'))(request, response);
      if (request.url === '/timeout') response.writeHead(504).end();
    });
    expect((await fetch(`${url}/slow`, { headers })).status).toBe(200);
    expect((await fetch(`${url}/slow`, { headers })).status).toBe(429);
    for (let i = 0; i < 2; i++) expect((await fetch(`${url}/timeout`, { headers })).status).toBe(504);
  });

  it('a resolver that throws becomes a 500, and the server keeps running', async () => {
    const { gate } = parts(['1/1m'], {
      route: (request) => {
        if (request.url === '/bad') throw new Error('secret');
        return 'r';
      },
    });
    const url = await serve(withHeadgate(gate, (_, response) => void response.end()));
    const broken = await fetch(`${url}/bad`, { headers });
    expect(broken.status).toBe(500);
    expect(await broken.text()).not.toMatch(/secret/);
    expect((await fetch(url, { headers })).status).toBe(200);
  });
});

describe('headgate in Connect', () => {
  it('works as middleware', async () => {
    const { gate } = parts(['1/1m']);
    const app = connect();
    app.use(headgate(gate));
    app.use((_, response) => void response.end('sent'));
    const url = await serve(app);
    const first = await fetch(url, { headers });
    expect([first.status, await first.text(), first.headers.get('x-ratelimit-remaining')]).toEqual([200, 'sent', '0']);
    expect((await fetch(url, { headers })).status).toBe(429);
    expect((await fetch(url)).headers.get('x-ratelimit-limit')).toBeNull();
  });
});
