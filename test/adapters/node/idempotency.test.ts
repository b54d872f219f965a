import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect as tcp } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { eventually, send } from 'headgate-testbed/raw-http';
import { describe, expect, it } from 'vitest';
import { idempotentRequest, passageOf } from '../../../src/adapters/node.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { type KeyedServer, keyedServers } from '../../support/keyed-server.ts';

const { serve } = keyedServers();

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown;

const pause = (ms = 30) => new Promise((resolve) => setTimeout(resolve, ms));
const typeOf = (reply: { text: string }) => JSON.parse(reply.text).type;

const BYTES = Buffer.from([0, 255, 254, 10, 13, 0xe2, 0x82]);
const ways: Record<string, Handler> = {
  end: (_, response) => response.end('ok ✓'),
  'end with bytes': (_, response) => response.end(BYTES),
  'end without arguments': (_, response) => response.end(),
  'end with only a callback': (_, response) => response.end(() => {}),
  'writes in several encodings': (_, response) => {
    response.write('6f6b', 'hex');
    response.write('');
    response.write(Buffer.from(' and '));
    response.write('é', 'latin1');
    response.end('ZW5k', 'base64', () => {});
  },
  'writeHead with a reason and a list': (_, response) =>
    response.writeHead(201, 'Made', ['X-Twice', 'a', 'X-Twice', 'b', 'Content-Type', 'text/x']).end('made'),
  'writeHead with an object': (_, response) => response.writeHead(202, { 'X-Own': '1', 'X-List': ['a', 'b'] }).end('x'),
  'setHeader, statusCode and a length': (_, response) => {
    response.statusCode = 203;
    response.setHeader('Content-Length', 4);
    response.setHeader('X-Own', '1');
    response.write('ab');
    response.end('cd');
  },
  'flushHeaders first': (_, response) => {
    response.setHeader('x-own', '1');
    response.flushHeaders();
    setTimeout(() => response.end('later'), 5);
  },
  'a stream piped into it': (_, response) => Readable.from([Buffer.alloc(200_000, 1), 'and', BYTES]).pipe(response),
  'a pipeline': async (_, response) => pipeline(Readable.from([Buffer.alloc(100_000, 2), 'end']), response),
  'a buffer that is reused': (_, response) => {
    const buffer = Buffer.from('aaaa');
    response.write(buffer, () => {
      buffer.fill('b');
      response.write(buffer, () => response.end('c'));
    });
  },
  'an error of 500': (_, response) => response.writeHead(500, { 'content-type': 'text/plain' }).end('broken'),
  'no content': (_, response) => response.writeHead(204, { etag: '"1"' }).end('left out'),
  'not modified': (_, response) => response.writeHead(304, { etag: '"1"' }).end(),
};

describe.each([
  ['node:http', false],
  ['connect', true],
])('I4: a replay in %s equals the original, written by', (_name, inConnect) => {
  it.each(Object.entries(ways))('%s', async (_way, handler) => {
    const server = await serve(handler, { inConnect });
    const bare = await serve(handler, { inConnect, gate: { idempotent: () => undefined } });
    const [first, second, unkeyed] = [await server.post(), await server.post(), await bare.post()];
    expect(server.runs).toBe(1);
    // The client of the original gets what it would get without a key.
    expect([first.status, first.body]).toEqual([unkeyed.status, unkeyed.body]);
    expect(first.headers['idempotency-replayed']).toBeUndefined();
    expect([second.status, second.body]).toEqual([first.status, first.body]);
    expect(second.headers['idempotency-replayed']).toBe('true');
    const own = ({ headers }: typeof first) =>
      Object.fromEntries(
        Object.entries(headers).filter(([name]) => /^x-(own|list|twice)|^etag|^content-type/.test(name)),
      );
    expect(own(second)).toEqual(own(first));
    expect(own(first)).toEqual(own(unkeyed));
    expect(first.headers['x-ratelimit-remaining']).toBe('999');
    expect(Object.keys(second.headers).filter((name) => /ratelimit|retry-after/.test(name))).toEqual([]);
  });
});

describe('the response that the client sees', () => {
  it('a short response is not sent before it is stored', async () => {
    const server = await serve((_, response) => response.end('ok'));
    server.line.next('complete', 'hung');
    const socket = tcp(server.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.write('POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 0\r\n\r\n');
    await eventually(() => server.line.sent.includes('complete'), 'the outcome is being stored');
    await pause();
    expect(text).toBe('');
    server.line.deliver();
    await eventually(() => text.endsWith('ok'), 'the response');
    // Node still adds its length.
    expect(text).toMatch(/content-length: 2/i);
    socket.destroy();
  });

  it.each([
    ['HEAD', 200],
    ['POST', 204],
  ])('%s with status %i has no body: flushHeaders waits until the response is stored', async (method, status) => {
    const server = await serve((_, response) => {
      response.statusCode = status;
      response.flushHeaders();
      setTimeout(() => response.end(), 10);
    });
    server.line.next('complete', 'hung');
    const socket = tcp(server.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.write(`${method} / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 0\r\n\r\n`);
    await eventually(() => server.line.sent.includes('complete'), 'the outcome is being stored');
    await pause();
    expect(text).toBe('');
    server.line.deliver();
    await eventually(() => text.startsWith(`HTTP/1.1 ${status} `), 'the response');
    socket.destroy();
  });

  it('a stream is sent one piece behind; its last piece and its end wait until it is stored', async () => {
    const pieces = new PassThrough();
    const server = await serve((_, response) => pieces.pipe(response.writeHead(200, { 'content-length': '3' })));
    server.line.next('complete', 'hung');
    const socket = tcp(server.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.write('POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 0\r\n\r\n');
    pieces.write('a');
    await pause();
    pieces.write('b');
    await eventually(() => text.endsWith('\r\na'), 'the first piece');
    pieces.end('c');
    await eventually(() => server.line.sent.includes('complete'), 'the outcome is being stored');
    await pause();
    expect(text.endsWith('\r\nab')).toBe(true);
    server.line.deliver();
    await eventually(() => text.endsWith('abc'), 'the last piece');
    socket.destroy();
  });

  it('the handler sees headersSent, writableEnded and errors as it would without a gate', async () => {
    const seen: unknown[] = [];
    const server = await serve((_, response) => {
      seen.push(response.headersSent, response.writableEnded);
      response.writeHead(201);
      seen.push(response.headersSent);
      expect(() => response.writeHead(500)).toThrow(/after they are sent/);
      expect(() => response.write(7 as never)).toThrow(TypeError);
      response.end('one');
      seen.push(response.writableEnded);
      response.setHeader('x-late', '1');
      response.statusCode = 500;
      response.write('two', (error) => seen.push((error as NodeJS.ErrnoException).code));
      response.end('three', (error?: NodeJS.ErrnoException) => seen.push(error?.code));
    });
    const reply = await server.post();
    expect([reply.status, reply.text, reply.headers['x-late']]).toEqual([201, 'one', undefined]);
    expect(seen).toEqual([false, false, true, true, 'ERR_STREAM_WRITE_AFTER_END', 'ERR_STREAM_ALREADY_FINISHED']);
  });

  it('an invalid status or field throws in the handler', async () => {
    const server = await serve((_, response) => {
      expect(() => response.writeHead(99)).toThrow(/Invalid status code/);
      expect(() => response.writeHead(200, { 'x-bad': 'a\nb' })).toThrow(/Invalid character/);
      response.end('fine');
    });
    expect((await server.post()).text).toBe('fine');
  });

  it('back-pressure works: a slow client slows the source down', async () => {
    let made = 0;
    let all = 64 * 1_048_576;
    const server = await serve(
      (_, response) =>
        new Readable({
          read() {
            made += 65_536;
            this.push(made > all ? null : Buffer.alloc(65_536));
          },
        }).pipe(response),
      { settings: { maxKeptBytes: 1_000 } },
    );
    const socket = tcp(server.port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    socket.pause();
    await pause(300);
    expect(made).toBeLessThan(32 * 1_048_576);
    all = made + 1_048_576;
    let got = 0;
    socket.on('data', (chunk) => {
      got += chunk.length;
    });
    socket.resume();
    await once(socket, 'close');
    expect(got).toBeGreaterThan(all);
  });
});

describe('trailers', () => {
  it('are sent, with a key and without; a replay has none', async () => {
    const server = await serve((_, response) => {
      response.writeHead(200, { trailer: 'x-sum' });
      response.write('half, ');
      response.addTrailers({ 'x-sum': '7' });
      response.end('whole');
    });
    const ask = async (key: string) => {
      const socket = tcp(server.port, '127.0.0.1');
      socket.write(
        `POST / HTTP/1.1\r\nhost: x\r\nx-account: a\r\n${key}content-length: 0\r\nconnection: close\r\n\r\n`,
      );
      let text = '';
      for await (const chunk of socket) text += chunk;
      return /half.*whole\r\n0\r\nx-sum: 7\r\n\r\n$/s.test(text);
    };
    const key = 'idempotency-key: k\r\n';
    expect([await ask(''), await ask(key), await ask(key)]).toEqual([true, true, false]);
    expect(server.runs).toBe(2);
  });
});

describe('what is stored', () => {
  it('I7: a response over the bound is sent but not stored, and the request is never run again', async () => {
    const server = await serve((_, response) => response.writeHead(201).end('x'.repeat(101)), {
      settings: { maxKeptBytes: 100 },
    });
    expect((await server.post()).text).toHaveLength(101);
    const retry = await server.post();
    expect([retry.status, typeOf(retry), server.runs]).toEqual([409, 'errors/already_used', 1]);
    expect(JSON.parse(retry.text).detail).toMatch(/completed with status 201/);
  });

  it.each([204, 304])(
    'I7: what a handler writes to a %i, which cannot have a body, does not count for the bound',
    async (status) => {
      const server = await serve((_, response) => response.writeHead(status).end('x'.repeat(101)), {
        settings: { maxKeptBytes: 100 },
      });
      expect([(await server.post()).status, (await server.post()).status, server.runs]).toEqual([status, status, 1]);
    },
  );

  it('I7: a response shorter than its content-length broke off: it is never replayed', async () => {
    const server = await serve((_, response) => response.writeHead(201, { 'content-length': 10 }).end('abc'));
    await server.post().catch(() => undefined);
    const retry = await server.post();
    expect([retry.status, typeOf(retry), server.runs]).toEqual([409, 'errors/already_used', 1]);
  });

  it.each([
    ['node:http', false],
    ['connect', true],
  ] as const)(
    'in %s a handler that throws after its end still sends and stores its whole response',
    async (_name, inConnect) => {
      const late = (_: IncomingMessage, response: ServerResponse) => {
        response.writeHead(201).end('sent');
        if (inConnect) throw new Error('too late');
        response.req.socket.destroy();
      };
      const server = await serve(late, { inConnect });
      expect((await server.post()).text).toBe('sent');
      const retry = await server.post();
      expect([retry.text, retry.headers['idempotency-replayed'], server.runs]).toEqual(['sent', 'true', 1]);
    },
  );

  it('I7: a response of exactly the bound is stored', async () => {
    const server = await serve((_, response) => response.end('x'.repeat(100)), { settings: { maxKeptBytes: 100 } });
    await server.post();
    expect((await server.post()).text).toHaveLength(100);
  });

  it.each<[string, Handler]>([
    [
      'destroys its response',
      (_, response) => {
        response.writeHead(201).write('half');
        response.write('of it');
        setTimeout(() => response.destroy(), 20);
      },
    ],
    [
      'pipes what breaks',
      (_, response) => {
        const broken = Readable.from(
          (async function* () {
            yield 'half';
            yield 'of it';
            throw new Error('boom');
          })(),
        );
        response.statusCode = 201;
        pipeline(broken, response).catch(() => {});
      },
    ],
  ])('I7: if a handler %s in the middle of its response, the status is stored', async (_way, handler) => {
    const server = await serve(handler);
    const first = await server.post().catch(() => undefined);
    expect(first?.broken ?? true).toBe(true);
    const retry = await server.post();
    expect([retry.status, typeOf(retry), server.runs]).toEqual([409, 'errors/already_used', 1]);
    expect(JSON.parse(retry.text).detail).toMatch(/status 201/);
  });

  it('I6, I7: a handler that throws or rejects has an outcome, and its error surfaces as before', async () => {
    const surfaced: unknown[] = [];
    const listeners = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    process.on('unhandledRejection', (error) => surfaced.push(error));
    try {
      const server = await serve((request) => {
        if (request.url === '/throws') throw new Error('thrown');
        return Promise.reject(new Error('rejected'));
      });
      for (const path of ['/throws', '/rejects']) {
        const abandoned = server.post(path, { 'idempotency-key': path }).catch(() => undefined);
        await eventually(() => server.line.sent.at(-1) === 'complete', 'the outcome is stored');
        const retry = await server.post(path, { 'idempotency-key': path });
        expect([retry.status, typeOf(retry)]).toEqual([409, 'errors/already_used']);
        server.server.closeAllConnections();
        await abandoned;
        server.line.sent.length = 0;
      }
      expect(surfaced).toMatchObject([{ message: 'thrown' }, { message: 'rejected' }]);
    } finally {
      process.removeAllListeners('unhandledRejection');
      for (const listener of listeners) process.on('unhandledRejection', listener);
    }
  });

  it('I4: cookies, request ids and a replay mark that the handler forged are not replayed', async () => {
    const server = await serve((_, response) =>
      response
        .writeHead(200, { 'set-cookie': 'a=1', 'x-request-id': '7', 'Idempotency-Replayed': 'true', 'x-own': '1' })
        .end('ok'),
    );
    const [first, second] = [await server.post(), await server.post()];
    expect([first.headers['set-cookie'], first.headers['idempotency-replayed']]).toEqual([['a=1'], undefined]);
    expect(second.headers).toMatchObject({ 'x-own': '1', 'idempotency-replayed': 'true' });
    expect([second.headers['set-cookie'], second.headers['x-request-id']]).toEqual([undefined, undefined]);
  });

  it('I4: a replay of a response to HEAD does not invent a content-length', async () => {
    const server = await serve((_, response) =>
      response.writeHead(200, { 'content-length': '1234', etag: '"1"' }).end(),
    );
    const ask = () => send(server.port, { method: 'HEAD', path: '/', headers: { 'idempotency-key': 'k' } });
    const [first, second] = [await ask(), await ask()];
    expect([first.headers['content-length'], first.headers.etag]).toEqual(['1234', '"1"']);
    expect([second.headers['content-length'], second.headers.etag]).toEqual([undefined, '"1"']);
    expect(server.runs).toBe(1);
  });

  it("I6, S16: a handler's 429 releases the key, and stays charged", async () => {
    let answers = 0;
    const server = await serve((_, response) =>
      response.writeHead(++answers === 1 ? 429 : 200, { 'retry-after': '1' }).end(),
    );
    const [first, second] = [await server.post(), await server.post()];
    expect([first.status, first.headers['retry-after'], second.status]).toEqual([429, '1', 200]);
    expect((await server.limiter.peek({ account: 'a', route: 'POST /' }))[0]?.remaining).toBe(998);
  });

  it('I6: an abandoned passage releases the key and refunds the charge, whatever the handler responds', async () => {
    const server = await serve(async (_, response) => {
      await passageOf(response)?.abandon();
      response.writeHead(503).end('refused');
    });
    expect([(await server.post()).status, (await server.post()).status, server.runs]).toEqual([503, 503, 2]);
    expect((await server.limiter.peek({ account: 'a', route: 'POST /' }))[0]?.remaining).toBe(1_000);
  });
});

describe('I11: a client that disconnects', () => {
  const gone = async (server: KeyedServer) => {
    const socket = tcp(server.port, '127.0.0.1');
    socket.write(
      'POST / HTTP/1.1\r\nhost: x\r\nx-account: a\r\nidempotency-key: k\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}',
    );
    await eventually(() => server.runs === 1, 'the handler runs');
    return socket;
  };

  it.each<[string, (go: Promise<unknown>) => Handler]>([
    [
      'before the response begins',
      (go) => async (_, response) => {
        await go;
        response.writeHead(201).write('half ');
        response.end('and half');
      },
    ],
    [
      'in the middle of the response',
      (go) => async (_, response) => {
        response.writeHead(201).write('half ');
        response.write('and ');
        await go;
        response.end('half');
      },
    ],
    [
      'while something is piped',
      (go) => (_, response) => {
        response.writeHead(201);
        Readable.from(
          (async function* () {
            yield 'half ';
            yield 'and ';
            await go;
            yield 'half';
          })(),
        ).pipe(response);
      },
    ],
    [
      'while a pipeline runs',
      (go) => (_, response) => {
        response.writeHead(201);
        const source = Readable.from(
          (async function* () {
            yield 'half ';
            yield 'and ';
            await go;
            yield 'half';
          })(),
        );
        pipeline(source, response).catch(() => {});
      },
    ],
  ])('%s: the whole response is stored, and its retry gets it', async (_when, handler) => {
    let go = () => {};
    const going = new Promise<void>((resolve) => {
      go = resolve;
    });
    const server = await serve(handler(going));
    const socket = await gone(server);
    await pause();
    socket.destroy();
    await pause();
    go();
    const retry = await server.post();
    expect([retry.status, retry.text, server.runs]).toEqual([201, 'half and half', 1]);
    expect(retry.headers['idempotency-replayed']).toBe('true');
  });

  it('while its handler waits for drain, or for a callback: the handler continues', async () => {
    let closed = 0;
    const server = await serve(
      async (_, response) => {
        response.on('close', () => closed++);
        const big = Buffer.alloc(1_048_576, 'x');
        for (let i = 0; i < 16; i++) {
          if (i % 2 === 0) await new Promise((resolve) => response.write(big, resolve));
          else if (!response.write(big)) await once(response, 'drain');
        }
        response.end('done');
      },
      {
        settings: { maxKeptBytes: 64 * 1_048_576 },
        claims: createMemoryClaimStore({ maxBytesPerScope: 64 * 1_048_576 }),
      },
    );
    const socket = await gone(server);
    socket.pause();
    await pause(100);
    socket.destroy();
    const retry = await server.post();
    expect(retry.body.length).toBe(16 * 1_048_576 + 4);
    expect([server.runs, closed]).toEqual([1, 1]);
  });

  it('before the handler runs: the key is released, and the retry runs', async () => {
    const server = await serve((_, response) => response.end('ok'));
    server.line.next('dispatch', 'hung');
    const socket = tcp(server.port, '127.0.0.1');
    socket.write('POST / HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 0\r\n\r\n');
    await eventually(() => server.line.sent.includes('dispatch'), 'the claim is being dispatched');
    socket.destroy();
    await pause();
    server.line.deliver();
    await eventually(() => server.line.sent.includes('abandon'), 'the key is released');
    expect(server.runs).toBe(0);
    expect((await send(server.port, { method: 'POST', path: '/', headers: { 'idempotency-key': 'k' } })).text).toBe(
      'ok',
    );
  });
});

describe('I10, I12: if another outcome may win', () => {
  const settings = { onOrphan: 'reexecute', maxKeptBytes: 100 } as const;
  const wins = (server: KeyedServer) =>
    server.idempotency.completeWith(
      { scope: 'app_1', key: 'k' },
      { status: '200', value: '[1,200,["x-winner","1"]]\ntwon' },
    );

  it('nothing is sent before it is stored, and the winner is sent instead', async () => {
    const server = await serve(
      async (_, response) => {
        response.setHeader('x-own', '1');
        response.write('own ');
        await wins(server);
        response.end('answer');
      },
      { settings },
    );
    const reply = await server.post();
    expect([reply.status, reply.text, reply.headers['x-own'], reply.headers['x-winner']]).toEqual([
      200,
      'won',
      undefined,
      '1',
    ]);
    expect(reply.headers['idempotency-replayed']).toBe('true');
  });

  it('a response that was sent in part breaks off', async () => {
    const server = await serve(
      async (_, response) => {
        response.write('own ');
        response.write('answer ');
        await pause();
        await wins(server);
        response.end('end');
      },
      { settings: { onOrphan: 'reject' } },
    );
    const reply = await server.post();
    expect([reply.broken, reply.text]).toEqual([true, 'own ']);
  });

  it('a response over the bound is stored without its body first, and then streamed', async () => {
    let written: unknown[] = [];
    const server = await serve(
      async (_, response) => {
        written = [response.write('x'.repeat(60)), response.write('x'.repeat(60))];
        await once(response, 'drain');
        await new Promise((resolve) => response.write('y', resolve));
        response.end('z');
      },
      { settings },
    );
    server.line.next('complete', 'hung');
    const asked = server.post();
    await eventually(() => server.line.sent.includes('complete'), 'the outcome is being stored');
    server.line.deliver();
    const reply = await asked;
    expect(reply.text).toBe(`${'x'.repeat(120)}yz`);
    expect(written).toEqual([true, false]);
    expect(typeOf(await server.post())).toBe('errors/already_used');
  });

  it('a response over the bound that lost is replaced, and what the handler still writes is ignored', async () => {
    let ended = false;
    const server = await serve(
      async (_, response) => {
        await wins(server);
        Readable.from(['x'.repeat(60), 'x'.repeat(60), 'more']).pipe(response);
        await pause();
        response.write('more');
        response.end('z');
        ended = true;
      },
      { settings },
    );
    expect((await server.post()).text).toBe('won');
    await eventually(() => ended, 'the handler ends');
  });

  it('503 if storing is not acknowledged', async () => {
    const server = await serve((_, response) => response.end('own'), { settings });
    server.line.next('complete', 'lost');
    const reply = await server.post();
    expect([reply.status, typeOf(reply)]).toEqual([503, 'errors/service_unavailable']);
    await eventually(() => server.idempotency.pending === 0, 'it was stored in the background');
    expect((await server.post()).text).toBe('own');
  });

  it('I12: with reject the client gets its response, and storing continues in the background', async () => {
    const server = await serve((_, response) => response.end('own'));
    server.line.next('complete', 'lost');
    expect((await server.post()).text).toBe('own');
    await eventually(() => server.idempotency.pending === 0, 'it was stored in the background');
    expect((await server.post()).headers['idempotency-replayed']).toBe('true');
  });
});

describe('many at once', () => {
  it('I5: one of 50 duplicates is executed, and all get its response', async () => {
    const server = await serve(async (_, response) => {
      await pause(50);
      response.writeHead(201).end(String(Math.random()));
    });
    const replies = await Promise.all(Array.from({ length: 50 }, () => server.post()));
    expect(server.runs).toBe(1);
    expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(replies.filter(({ headers }) => headers['idempotency-replayed'] === 'true')).toHaveLength(49);
    expect((await server.limiter.peek({ account: 'a', route: 'POST /' }))[0]?.remaining).toBe(999);
  });

  it('pipelined requests with keys get their own responses, in order', async () => {
    const server = await serve(async (request, response) => {
      await pause(request.url === '/1' ? 40 : 1);
      response.end(`answer ${request.url}`);
    });
    const socket = tcp(server.port, '127.0.0.1');
    const ask = (i: number) =>
      `POST /${i} HTTP/1.1\r\nhost: x\r\nidempotency-key: k${i}\r\ncontent-length: 2\r\n\r\n{}`;
    socket.write([1, 2, 3, 1].map(ask).join(''));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    await eventually(() => text.split('answer').length === 5, 'four responses');
    expect([...text.matchAll(/answer (\/\d)/g)].map(([, path]) => path)).toEqual(['/1', '/2', '/3', '/1']);
    expect(server.runs).toBe(3);
    socket.destroy();
  });
});

describe("I9: dispatch: 'explicit'", () => {
  const gate = {
    idempotent: (request: IncomingMessage) => idempotentRequest(request, { scope: 'app_1', dispatch: 'explicit' }),
  };

  it('an error before dispatch() frees the key, and one after it is the outcome', async () => {
    const statuses = [422, 500, 500];
    const server = await serve(
      async (_, response) => {
        const status = statuses.shift();
        if (statuses.length === 0) await passageOf(response)?.dispatch();
        response.writeHead(status ?? 200).end(`attempt with ${statuses.length} to come`);
      },
      { gate },
    );
    const replies = [await server.post(), await server.post(), await server.post(), await server.post()];
    expect(replies.map(({ status }) => status)).toEqual([422, 500, 500, 500]);
    expect([server.runs, replies[3]?.text, replies[3]?.headers['idempotency-replayed']]).toEqual([
      3,
      replies[2]?.text,
      'true',
    ]);
  });

  it('if dispatch() rejects, the client gets 503, whatever the handler answers, and no part of that was sent', async () => {
    const server = await serve(
      async (_, response) => {
        response.write('begun, ');
        server.line.always = 'lost';
        const error = await passageOf(response)
          ?.dispatch()
          .catch((rejected: unknown) => rejected);
        server.line.always = 'ok';
        response.end(`and ended with ${(error as { code?: string }).code}`);
      },
      { gate },
    );
    const reply = await server.post();
    expect([reply.status, typeOf(reply)]).toEqual([503, 'errors/service_unavailable']);
    expect(server.runs).toBe(1);
  });

  it('is refused with another value', () => {
    const request = { method: 'POST', url: '/', headers: {}, rawHeaders: [] } as unknown as IncomingMessage;
    for (const options of [
      { dispatch: 'later' },
      { compares: 'cookie' },
      { compares: ['a b'] },
      { compares: ['cookie'] },
    ])
      expect(() => idempotentRequest(request, { scope: 'a', ...options } as never)).toThrow(
        /options\.(dispatch|compares|secret)/,
      );
  });
});
