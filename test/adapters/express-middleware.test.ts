import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import express, { type RequestHandler } from 'express';
import { eventually } from 'headgate-testbed/raw-http';
import { afterEach, describe, expect, it } from 'vitest';
import { headgate, idempotentRequest } from '../../src/adapters/express.ts';
import { createGate, createIdempotency, createLimiter } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

// These packages have no types.
const require = createRequire(import.meta.url);
const compression: (options: object) => RequestHandler = require('compression');
const session: (options: object) => RequestHandler = require('express-session');

const LINES = Array.from(
  { length: 5_000 },
  (_, i) => `line ${i} of a file, as long as such lines are, or somewhat longer\n`,
);
const LONG = LINES.join('');
const ROUTES: Record<string, RequestHandler> = {
  write: (_, response) => {
    response.type('text/plain');
    for (const piece of ['one ', 'two ', 'three']) response.write(piece);
    response.end();
  },
  pipe: (_, response) => void Readable.from(['one ', 'two ', 'three']).pipe(response.type('text/plain')),
  long: (_, response) => void Readable.from(LINES).pipe(response.type('text/plain')),
  send: (_, response) => void response.send('sent'.repeat(1_000)),
  file: (_, response) => response.sendFile(`${import.meta.dirname}/express-middleware.test.ts`),
  head: (_, response) => void response.writeHead(201, { 'content-type': 'text/plain' }).end('x'.repeat(2_000)),
};

/** Every request changes its session, so express-session saves it before the end of the answer. */
const SESSION: RequestHandler[] = [
  session({ secret: 'x', resave: false, saveUninitialized: false }),
  (request, _, next) => {
    (request as unknown as { session: { user: string } }).session.user = 'ann';
    next();
  },
];

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serve({ front = [], behind = [] }: { front?: RequestHandler[]; behind?: RequestHandler[] }) {
  const idempotency = createIdempotency({ store: createMemoryClaimStore() });
  const gate = createGate<express.Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1000/1m'] } }),
    account: () => 'a',
    route: () => 'r',
    idempotency,
    idempotent: (request) => idempotentRequest(request, { scope: 's' }),
  });
  const app = express();
  for (const middleware of [...front, headgate(gate), ...behind]) app.use(middleware);
  for (const [path, handler] of Object.entries(ROUTES)) app.post(`/${path}`, handler);
  const server = createServer(app).listen(0);
  closing.push(() => void server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const ask = async (path: string, key?: string) => {
    const headers = { 'accept-encoding': 'gzip', ...(key && { 'idempotency-key': key }) };
    const answer = await fetch(`http://127.0.0.1:${port}/${path}`, { method: 'POST', headers });
    const { status } = answer;
    const fields = ['content-encoding', 'vary', 'content-type'].map((name) => answer.headers.get(name));
    return { status, fields, body: await answer.text(), cookie: answer.headers.has('set-cookie') };
  };
  return { ask, idempotency, port };
}

describe.each(Object.keys(ROUTES))('I4: the route %s, with other middleware around the gate', (path) => {
  it.each<[string, { front?: RequestHandler[]; behind?: RequestHandler[] }]>([
    ['compression in front', { front: [compression({ threshold: 0 })] }],
    ['compression behind', { behind: [compression({ threshold: 0 })] }],
    ['a session in front', { front: SESSION }],
    ['a session behind', { behind: SESSION }],
  ])('%s: the answer is the same with a key, without one, and as a replay', async (_where, { front, behind }) => {
    const { ask, idempotency } = await serve({ ...(front && { front }), ...(behind && { behind }) });
    const plain = await ask(path);
    expect([plain.status, plain.body.length]).toEqual([path === 'head' ? 201 : 200, expect.any(Number)]);
    expect(plain.cookie).toBe([front, behind].includes(SESSION));
    expect(await ask(path, 'k')).toEqual(plain);
    const { cookie: _, ...replay } = await ask(path, 'k');
    expect(replay).toEqual({ status: plain.status, fields: plain.fields, body: plain.body });
    expect(idempotency.held).toBe(0);
  });
});

it('I11: behind compression, an answer is stored although its client goes in the middle of it', async () => {
  const { ask, idempotency, port } = await serve({ front: [compression({ threshold: 0 })] });
  const gone = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${port}/long`, {
    method: 'POST',
    headers: { 'accept-encoding': 'gzip', 'idempotency-key': 'k' },
    signal: gone.signal,
  });
  gone.abort();
  await answer.text().catch(() => {});
  await eventually(() => idempotency.held === 0, 'the answer is stored');
  expect((await ask('long', 'k')).body).toBe(LONG);
});

describe('I6, I7: an error of a handler that has begun to answer,', () => {
  it.each<[string, RequestHandler]>([
    [
      'from a stream that breaks, passed to next()',
      (_, response, next) => {
        const broken = async function* () {
          yield 'one ';
          yield 'two ';
          await pause(1);
          throw new Error('boom');
        };
        Readable.from(broken()).on('error', next).pipe(response);
      },
    ],
    [
      'thrown',
      (_, response) => {
        response.write('one ');
        throw new Error('boom');
      },
    ],
    [
      'rejected',
      async (_, response) => {
        response.write('one ');
        response.write('two ');
        await pause(1);
        throw new Error('boom');
      },
    ],
  ])('%s: the answer breaks off, and the key is completed', async (_how, handler) => {
    const failing: Record<string, RequestHandler> = ROUTES;
    failing.fail = handler;
    const { port, idempotency } = await serve({});
    delete failing.fail;
    const ask = () =>
      fetch(`http://127.0.0.1:${port}/fail`, { method: 'POST', headers: { 'idempotency-key': 'k' } }).then(
        async (answer) => [answer.status, await answer.text()] as const,
      );
    await expect(ask()).rejects.toThrow();
    await eventually(() => idempotency.held === 0, 'no key is held');
    const [status, text] = await ask();
    expect([status, JSON.parse(text)]).toMatchObject([409, { type: 'errors/already_used' }]);
  });
});
