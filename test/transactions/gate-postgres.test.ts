import { createServer, type Server } from 'node:http';
import express from 'express';
import fastify from 'fastify';
import { afterFile } from 'headgate-testbed/after-file';
import { startTcpProxy } from 'headgate-testbed/tcp-proxy';
import type pg from 'pg';
import { beforeEach, describe, expect, it } from 'vitest';
import * as expressAdapter from '../../src/adapters/express.ts';
import * as fastifyAdapter from '../../src/adapters/fastify.ts';
import * as fetchAdapter from '../../src/adapters/fetch.ts';
import { createGate } from '../../src/gate/create-gate.ts';
import type { GateEvent } from '../../src/gate/events.ts';
import type { Passage } from '../../src/gate/gate.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { createPostgresStore } from '../../src/stores/postgres/limits.ts';
import type { TransactionalIdempotencyOptions } from '../../src/transactions/options.ts';
import {
  createTransactionalIdempotency,
  type TransactionalIdempotency,
} from '../../src/transactions/transactional-idempotency.ts';
import { migrated, newPool } from '../support/postgres.ts';

/** The response of a handler: a status, and a text or pieces of one. */
interface Answer {
  readonly status: number;
  readonly body: string | readonly string[];
}
type Handler = (transaction: pg.PoolClient | undefined, passage: Passage | undefined) => Promise<Answer>;
type Send = (key: string | undefined, body?: string) => Promise<{ status: number; text: string; headers: Headers }>;

const schema = 'transactions_gate';
const pool = await migrated(newPool(), schema);
await pool.query('drop table if exists payments; create table payments (id text primary key)');
await pool.query(
  `drop table if exists unique_later; create table unique_later (id text unique deferrable initially deferred)`,
);
const rows = async () => (await pool.query('select id from payments order by id')).rows.map(({ id }) => id);
const claims = async () => (await pool.query(`select status from ${schema}.claims`)).rows.length;
beforeEach(async () => {
  await pool.query(`delete from payments; delete from unique_later; delete from ${schema}.claims`);
});

const events: GateEvent[] = [];
const account = () => 'acc';
const common = () => ({
  limiter: createLimiter({ limits: { allMethods: ['20/1h'] } }),
  account,
  logger: false as const,
  onEvent: (event: GateEvent) => void events.push(event),
});

async function listen(server: Server): Promise<Send> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterFile(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return (key, body = '{"amount":5}') => request(fetch, `http://127.0.0.1:${port}/payments`, key, body);
}

async function request(
  send: (request: Request) => Promise<Response>,
  url: string,
  key: string | undefined,
  body: string,
): ReturnType<Send> {
  const headers = { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) };
  const response = await send(new Request(url, { method: 'POST', headers, body }));
  return { status: response.status, text: await response.text(), headers: response.headers };
}

/** Mounts a gate in front of a handler. */
const FRAMEWORKS: Readonly<
  Record<string, (idempotency: TransactionalIdempotency<pg.PoolClient>, handler: Handler) => Promise<Send>>
> = {
  async Express(idempotency, handler) {
    const { headgate, idempotentRequest, passageOf, routeOf } = expressAdapter;
    const gate = createGate<express.Request>({
      ...common(),
      route: routeOf,
      idempotency,
      idempotent: (req) => idempotentRequest(req, { scope: 'app' }),
    });
    const app = express();
    app.set('env', 'test');
    app.post('/payments', headgate(gate), async (_req, res) => {
      const passage = passageOf(res);
      const { status, body } = await handler(idempotency.transactionOf(passage), passage);
      res.status(status);
      if (typeof body === 'string') res.send(body);
      else {
        for (const piece of body) res.write(piece);
        res.end();
      }
    });
    return listen(createServer(app));
  },
  async Fastify(idempotency, handler) {
    const { headgate, idempotentRequest, passageOf, routeOf } = fastifyAdapter;
    const gate = createGate<fastify.FastifyRequest>({
      ...common(),
      route: routeOf,
      idempotency,
      idempotent: (req) => idempotentRequest(req, { scope: 'app' }),
    });
    const app = fastify();
    await app.register(headgate(gate));
    app.post('/payments', async (_req, reply) => {
      const passage = passageOf(reply);
      const { status, body } = await handler(idempotency.transactionOf(passage), passage);
      return reply.code(status).send(typeof body === 'string' ? body : streamOf(body));
    });
    await app.ready();
    return listen(app.server as Server);
  },
  async fetch(idempotency, handler) {
    const { idempotentRequest, passageOf, withHeadgate } = fetchAdapter;
    const gate = createGate<Request>({
      ...common(),
      route: () => 'POST /payments',
      idempotency,
      idempotent: (req) => idempotentRequest(req, { scope: 'app' }),
    });
    const handle = withHeadgate(gate, async (req: Request) => {
      const passage = passageOf(req);
      const { status, body } = await handler(idempotency.transactionOf(passage), passage);
      return new Response(typeof body === 'string' ? body : streamOf(body), { status });
    });
    const safe = (req: Request) => handle(req).catch(() => new Response('thrown', { status: 500 }));
    return (key, body = '{"amount":5}') => request(safe, 'http://localhost/payments', key, body);
  },
};

function streamOf(pieces: readonly string[]): ReadableStream<Uint8Array> {
  const left = pieces.map((piece) => new TextEncoder().encode(piece));
  return new ReadableStream({
    pull(controller) {
      const piece = left.shift();
      if (piece === undefined) controller.close();
      else controller.enqueue(piece);
    },
  });
}

const insert = (transaction: pg.PoolClient | undefined, id: string) =>
  (transaction as pg.PoolClient).query('insert into payments values ($1)', [id]);

describe.each(Object.entries(FRAMEWORKS))('%s', (_, mount) => {
  const idempotency = createTransactionalIdempotency(pool, { schema, logger: false, maxKeptBytes: 1_000 });
  let handler: Handler;
  let send: Send | undefined;
  const post: Send = async (...args) => {
    send ??= await mount(idempotency, (...given) => handler(...given));
    return send(...args);
  };

  it('commits the rows with the answer, and replays it', async () => {
    handler = async (transaction) => {
      await insert(transaction, 'a');
      // Nobody else sees the row before the client has its answer.
      expect(await rows()).toEqual([]);
      return { status: 201, body: ['pay', 'ment a'] };
    };
    expect(await post('k')).toMatchObject({ status: 201, text: 'payment a' });
    expect(await rows()).toEqual(['a']);
    handler = () => Promise.reject(new Error('executed twice'));
    const replay = await post('k');
    expect(replay).toMatchObject({ status: 201, text: 'payment a' });
    expect(replay.headers.get('idempotency-replayed')).toBe('true');
    expect((await post('k', '{"amount":6}')).status).toBe(409);
  });

  it('stores a 4xx with its rows', async () => {
    handler = async (transaction) => insert(transaction, 'declined').then(() => ({ status: 402, body: 'declined' }));
    expect(await post('k')).toMatchObject({ status: 402, text: 'declined' });
    expect(await rows()).toEqual(['declined']);
    expect((await post('k')).headers.get('idempotency-replayed')).toBe('true');
  });

  it.each([500, 429])('rolls back after a %d, and frees the key', async (status) => {
    handler = async (transaction) => insert(transaction, 'a').then(() => ({ status, body: 'failed' }));
    expect(await post('k')).toMatchObject({ status, text: 'failed' });
    expect(await rows()).toEqual([]);
    expect(await claims()).toBe(0);
    handler = async (transaction) => insert(transaction, 'b').then(() => ({ status: 201, body: 'b' }));
    expect(await post('k')).toMatchObject({ status: 201, text: 'b' });
  });

  it('rolls back if the handler throws', async () => {
    handler = async (transaction) => {
      await insert(transaction, 'a');
      throw new Error('mine');
    };
    expect((await post('k')).status).toBe(500);
    expect(await rows()).toEqual([]);
    expect(await claims()).toBe(0);
  });

  it('rolls back after abandon(), whose handler cannot answer a success', async () => {
    handler = async (transaction, passage) => {
      await insert(transaction, 'a');
      await passage?.abandon();
      return { status: 404, body: 'no such account' };
    };
    expect(await post('k')).toMatchObject({ status: 404, text: 'no such account' });
    expect(await claims()).toBe(0);
    handler = async (transaction, passage) => {
      await insert(transaction, 'a');
      await passage?.abandon();
      return { status: 201, body: 'a lie' };
    };
    expect((await post('k')).status).toBe(500);
    expect(await rows()).toEqual([]);
  });

  it('does not answer a success that cannot be committed', async () => {
    handler = async (transaction) => {
      await transaction?.query("insert into unique_later values ('a'), ('a')");
      return { status: 201, body: 'a lie' };
    };
    expect(await post('k')).toMatchObject({ status: 500, text: expect.stringContaining('could not be committed') });
    expect(await claims()).toBe(0);
  });

  it('refuses a stream that is longer than maxKeptBytes', async () => {
    handler = async (transaction) => {
      await insert(transaction, 'a');
      return { status: 200, body: ['x'.repeat(600), 'y'.repeat(600), 'z'] };
    };
    expect(await post('k')).toMatchObject({ status: 500, text: expect.not.stringContaining('xxx') });
    expect(await rows()).toEqual([]);
    expect(await claims()).toBe(0);
  });

  it('gives a request without a key no transaction', async () => {
    handler = async (transaction) => ({ status: 200, body: String(transaction) });
    expect(await post(undefined)).toMatchObject({ status: 200, text: 'undefined' });
    expect(idempotency.held).toBe(0);
  });

  it('executes a key once that is sent several times at once', async () => {
    handler = async (transaction) => insert(transaction, 'a').then(() => ({ status: 201, body: 'a' }));
    const answers = await Promise.all([post('k'), post('k'), post('k')]);
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201]);
    expect(await rows()).toEqual(['a']);
  });
});

describe('a connection that is lost', async () => {
  const address = new URL((pool as unknown as { options: { connectionString: string } }).options.connectionString);
  const proxy = await startTcpProxy(Number(address.port));
  afterFile(() => proxy.close());
  // One connection, so that what follows needs a new one.
  const lossy = newPool({ max: 1, connectionString: address.href.replace(address.port, String(proxy.port)) });
  const setUp = async (handler: Handler, options: TransactionalIdempotencyOptions = {}) => {
    const idempotency = createTransactionalIdempotency(lossy, { schema, logger: false, ...options });
    return (FRAMEWORKS.fetch as (typeof FRAMEWORKS)[string])(idempotency, handler);
  };

  it('at the commit, after it: the answer is a success, and it is true', async () => {
    const send = await setUp(async (transaction) => {
      await insert(transaction, 'a');
      // The answer about the stored outcome arrives, and the answer about the commit does not.
      Object.assign(proxy, { passAnswers: 1, cutAfterBytes: 0 });
      return { status: 201, body: 'a' };
    });
    expect(await send('k')).toMatchObject({ status: 201, text: 'a' });
    expect(await rows()).toEqual(['a']);
  });

  it('before the commit: nothing is left, and the client may retry', async () => {
    let isFirst = true;
    const send = await setUp(async (transaction) => {
      await insert(transaction, 'a');
      if (isFirst) Object.assign(proxy, { passAnswers: 0, cutAfterBytes: 0 });
      isFirst = false;
      return { status: 201, body: 'a' };
    });
    const refused = await send('k');
    expect(refused).toMatchObject({ status: 503, text: expect.stringContaining('Nothing was done') });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await rows()).toEqual([]);
    expect(await send('k')).toMatchObject({ status: 201, text: 'a' });
    expect(await rows()).toEqual(['a']);
  });

  it('at the commit, while the server is away: the client learns that it is unknown, and its retry the truth', async () => {
    const send = await setUp(
      async (transaction) => {
        await insert(transaction, 'a');
        Object.assign(proxy, { passAnswers: 1, cutAfterBytes: 0, target: 1 });
        return { status: 201, body: 'a' };
      },
      { deadlineMs: 200 },
    );
    expect(await send('k')).toMatchObject({ status: 503, text: expect.stringContaining('unknown') });
    proxy.target = Number(address.port);
    const retry = await send('k');
    expect(retry).toMatchObject({ status: 201, text: 'a' });
    expect(retry.headers.get('idempotency-replayed')).toBe('true');
    expect(await rows()).toEqual(['a']);
  });
});

it('refuses a limiter whose store has the same pool, because open transactions would take its connections', () => {
  const gate = (client: pg.Pool) =>
    createGate<Request>({
      ...common(),
      limiter: createLimiter({ store: createPostgresStore(client, { schema, logger: false }), limits: ['20/1h'] }),
      idempotency: createTransactionalIdempotency(pool, { schema: 'another' }),
      idempotent: () => undefined,
    });
  expect(() => gate(pool)).toThrow(/^idempotency: must have another client than the store of the limiter/);
  expect(gate(newPool())).toBeDefined();
});

it('takes no notes: the handler writes its rows in the transaction', async () => {
  const idempotency = createTransactionalIdempotency(pool, { schema, deadlineMs: 5_000, logger: false });
  const opened = await idempotency.open({ scope: 'app', key: 'noted', fingerprint: 'f', dispatch: 'explicit' });
  if (opened.kind !== 'claimed') throw new Error(opened.kind);
  const { claim } = opened;
  const refusal = /^note: must not be given: write the rows in the transaction, got a note$/;
  await expect(claim.dispatch('secret')).rejects.toThrow(refusal);
  await expect(claim.complete({ status: '200', value: '' }, { note: 'secret' })).rejects.toThrow(refusal);
  await expect(claim.abandon({ note: 'secret' })).rejects.toThrow(refusal);
  expect(() => claim.noteOutcome('secret')).toThrow(refusal);
  expect(await claim.dispatch()).toEqual({ kind: 'ok' });
  expect(await claim.complete({ status: '200', value: '' })).toEqual({ kind: 'kept' });
});
