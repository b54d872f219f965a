import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
// @ts-expect-error types are missing under this name
import express4 from 'express-4';
import fastify, { type FastifyRequest } from 'fastify';
import Koa from 'koa';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as onExpress from '../../../src/adapters/express.ts';
import * as onFastify from '../../../src/adapters/fastify.ts';
import * as onKoa from '../../../src/adapters/koa.ts';
import * as onNode from '../../../src/adapters/node.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../../src/index.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import type { SuiteServer } from '../../support/adapter-suite/subject.ts';
import { listenFastify } from '../../support/listen-fastify.ts';
import { HTTP1, HTTP2, type Start, type Version } from '../../support/versions.ts';

const open: SuiteServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

/** Larger than a window of HTTP/2, and than the buffer of a stream. */
const FILE = Buffer.alloc(1_500_000, Buffer.from([0, 255, 13, 10, 45, 45, 98]));
let folder: string;
let runs = 0;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-send-'));
  writeFileSync(join(folder, 'file.bin'), FILE);
});
afterAll(() => rmSync(folder, { recursive: true }));

const opened = () => {
  runs++;
  return createReadStream(join(folder, 'file.bin'));
};

function gateFor<Request>(idempotentRequest: (request: Request, options: { scope: string }) => unknown) {
  return createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { unlimited: true } }),
    idempotency: createIdempotency({ store: createMemoryClaimStore(), maxKeptBytes: 4_000_000 }),
    account: () => undefined,
    route: () => undefined,
    idempotent: ((request: Request) =>
      idempotentRequest(request, { scope: 'app_1' })) as GateOptions<Request>['idempotent'],
  });
}

const onApp =
  (create: typeof express): Start =>
  ({ serve }) =>
    serve(
      create().post('/x', onExpress.headgate(gateFor<express.Request>(onExpress.idempotentRequest)), (_, response) => {
        runs++;
        response.sendFile(join(folder, 'file.bin'));
      }),
    );

const node: Start = ({ serve }) =>
  serve(
    onNode.withHeadgate(
      gateFor<IncomingMessage>(onNode.idempotentRequest),
      (_, response) => void opened().pipe(response),
    ),
  );

const koa: Start = ({ serve }) => {
  const app = new Koa().use(onKoa.headgate(gateFor<Koa.Context>(onKoa.idempotentRequest)));
  app.silent = true;
  app.use((context) => {
    context.body = opened();
  });
  return serve(app.callback());
};

const fastifyApp: Start = ({ http2 }) => {
  const app = fastify({ http2: http2 as false, forceCloseConnections: true });
  app.register(onFastify.headgate(gateFor<FastifyRequest>(onFastify.idempotentRequest)));
  app.register(async (inner) => void inner.post('/x', async (_, reply) => reply.send(opened())));
  return listenFastify(app);
};

describe('I4, I11: a file that is sent is stored whole, even if its client disconnects', () => {
  it.each<[string, Version, Start]>([
    ['sendFile of express 5', HTTP1, onApp(express)],
    ['sendFile of express 4', HTTP1, onApp(express4 as typeof express)],
    ['a pipe', HTTP1, node],
    ['a pipe over HTTP/2', HTTP2, node],
    ['a stream of koa', HTTP1, koa],
    ['a stream of koa over HTTP/2', HTTP2, koa],
    ['a stream of fastify', HTTP1, fastifyApp],
    ['a stream of fastify over HTTP/2', HTTP2, fastifyApp],
  ])('%s', async (_name, version, start) => {
    runs = 0;
    const server = await start(version);
    open.push(server);
    const ask = (key: string, signal?: AbortSignal) => {
      const init = { method: 'POST', headers: { 'idempotency-key': key }, ...(signal && { signal }) };
      return (server.fetch ?? fetch)(new Request(`http://127.0.0.1:${server.port}/x`, init));
    };
    const first = await ask('whole');
    expect(Buffer.from(await first.arrayBuffer()).equals(FILE)).toBe(true);
    const gone = new AbortController();
    const broken = await ask('gone', gone.signal);
    gone.abort();
    await broken.arrayBuffer().catch(() => {});
    for (const key of ['whole', 'gone']) {
      const retry = await ask(key);
      expect([retry.status, retry.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
      expect(Buffer.from(await retry.arrayBuffer()).equals(FILE)).toBe(true);
    }
    expect(runs).toBe(2);
  });
});
