import { createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fastifyMultipart from '@fastify/multipart';
// @ts-expect-error has no types
import koaMulter from '@koa/multer';
import Router from '@koa/router';
import busboy from 'busboy';
import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import fastify, { type FastifyRequest } from 'fastify';
import formidable from 'formidable';
import Koa from 'koa';
import multer from 'multer';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import * as onExpress from '../../src/adapters/express.ts';
import * as onFastify from '../../src/adapters/fastify.ts';
import * as onKoa from '../../src/adapters/koa.ts';
import * as onNode from '../../src/adapters/node.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/store.ts';
import { listen } from '../support/listen.ts';

type Served = { readonly port: number; close(): Promise<unknown> };
const open: Served[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

/** The account in the body and keys: whatever can want the body in front of its parser. */
function gateFor<Request>(
  on: {
    idempotentRequest: (request: Request, options: { scope: string; maxBytes: number }) => never | unknown;
    fieldOfBody: (request: Request, name: string, options: { maxBytes: number }) => Promise<string>;
  },
  route: (request: Request) => string | undefined,
) {
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1000/1m'] } });
  const maxBytes = 4_000_000;
  const gate = createGate<Request>({
    limiter,
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    account: (request) => on.fieldOfBody(request, 'account_id', { maxBytes }),
    route,
    idempotent: ((request: Request) =>
      on.idempotentRequest(request, { scope: 'app_1', maxBytes })) as GateOptions<Request>['idempotent'],
  });
  return { limiter, gate };
}

const FILE = Buffer.alloc(1_500_000, Buffer.from([0, 255, 13, 10, 45, 45, 98]));
const form = () => {
  const data = new FormData();
  data.append('account_id', 'a');
  data.append('file', new Blob([FILE]), 'ü.bin');
  return data;
};
const FOUND = { account: 'a', size: FILE.length, same: true };
const found = (account: unknown, file: Buffer) => ({ account, size: file.length, same: file.equals(FILE) });

const onServer = (parse: (request: IncomingMessage) => Promise<unknown>) => {
  const { gate, limiter } = gateFor<IncomingMessage>(onNode, () => 'POST /x');
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    response.end(JSON.stringify(await parse(request)));
  };
  return { limiter, served: listen(onNode.withHeadgate(gate, serve)) };
};

const onApp = (create: typeof express, ...handlers: express.RequestHandler[]) => {
  const { gate, limiter } = gateFor<express.Request>(onExpress, onExpress.routeOf);
  const app = create().post('/x', onExpress.headgate(gate), ...handlers);
  return { limiter, served: listen(app) };
};

const PARSERS: Record<string, () => { limiter: { peek: unknown }; served: Promise<Served> }> = {
  ...Object.fromEntries(
    [express, express4 as typeof express].flatMap((create, index) => [
      [
        `multer in express ${5 - index}`,
        () =>
          onApp(create, multer().single('file'), (request, response) => {
            response.json(found(request.body.account_id, request.file?.buffer as Buffer));
          }),
      ],
    ]),
  ),
  '@koa/multer': () => {
    const { gate, limiter } = gateFor<Koa.Context>(onKoa, onKoa.routeOf);
    const router = new Router();
    router.post('/x', onKoa.headgate<Koa.Context>(gate), koaMulter().single('file'), (context) => {
      const { body } = context.request as unknown as { body: { account_id: string } };
      context.body = found(body.account_id, (context.file as { buffer: Buffer }).buffer);
    });
    return { limiter, served: listen(new Koa().use(router.routes()).callback()) };
  },
  '@fastify/multipart': () => {
    const { gate, limiter } = gateFor<FastifyRequest>(onFastify, onFastify.routeOf);
    const app = fastify({ forceCloseConnections: true, bodyLimit: 4_000_000 });
    app.register(onFastify.headgate(gate));
    app.register(fastifyMultipart, { attachFieldsToBody: true, limits: { fileSize: 4_000_000 } });
    app.register(async (inner) => {
      inner.post('/x', async (request) => {
        const body = request.body as { account_id: { value: string }; file: { toBuffer(): Promise<Buffer> } };
        return found(body.account_id.value, await body.file.toBuffer());
      });
    });
    const served = app.listen({ port: 0, host: '127.0.0.1' }).then((url) => ({
      port: Number(new URL(url).port),
      close: () => app.close(),
    }));
    return { limiter, served };
  },
  busboy: () =>
    onServer(
      (request) =>
        new Promise((resolve) => {
          const chunks: Buffer[] = [];
          let account: string | undefined;
          const parser = busboy({ headers: request.headers });
          parser.on('field', (_name, value) => {
            account = value;
          });
          parser.on('file', (_name, file) => file.on('data', (chunk: Buffer) => chunks.push(chunk)));
          parser.on('close', () => resolve(found(account, Buffer.concat(chunks))));
          request.pipe(parser);
        }),
    ),
  formidable: () =>
    onServer(async (request) => {
      const [fields, files] = await formidable({}).parse(request);
      const path = files.file?.[0]?.filepath as string;
      const chunks: Buffer[] = [];
      for await (const chunk of createReadStream(path)) chunks.push(chunk as Buffer);
      rmSync(path);
      return found(fields.account_id?.[0], Buffer.concat(chunks));
    }),
};

describe('I13: behind a gate that took account and fingerprint from the body, it is read untouched by', () => {
  it.each(Object.entries(PARSERS))('%s', async (_name, start) => {
    const { served } = start();
    const server = await served;
    open.push(server);
    const post = async (key: Record<string, string>) => {
      const url = `http://127.0.0.1:${server.port}/x`;
      const response = await fetch(url, { method: 'POST', body: form(), headers: key });
      return {
        found: await response.json(),
        replayed: response.headers.get('idempotency-replayed'),
        remaining: response.headers.get('x-ratelimit-remaining'),
      };
    };
    expect(await post({})).toEqual({ found: FOUND, replayed: null, remaining: '999' });
    expect(await post({ 'idempotency-key': 'k' })).toEqual({ found: FOUND, replayed: null, remaining: '998' });
    // fetch makes another boundary each time.
    expect(await post({ 'idempotency-key': 'k' })).toEqual({ found: FOUND, replayed: 'true', remaining: null });
  });

  it.each([
    ['express 5', express],
    ['express 4', express4 as typeof express],
  ])('express.json and express.urlencoded of %s', async (_name, create) => {
    const { served } = onApp(create, express.json(), express.urlencoded(), (request, response) => {
      response.json(request.body);
    });
    const server = await served;
    open.push(server);
    for (const [key, type, body] of [
      [undefined, 'application/json', '{"account_id":"a"}'],
      ['k', 'application/json', '{"account_id":"a"}'],
      ['l', 'application/x-www-form-urlencoded', 'account_id=a'],
    ] as const) {
      const response = await fetch(`http://127.0.0.1:${server.port}/x`, {
        method: 'POST',
        headers: { 'content-type': type, ...(key && { 'idempotency-key': key }) },
        body,
      });
      expect(await response.json()).toEqual({ account_id: 'a' });
    }
    const without = await fetch(`http://127.0.0.1:${server.port}/x`, { method: 'POST', body: '{}' });
    expect([without.status, ((await without.json()) as { type: string }).type]).toEqual([
      422,
      'errors/unprocessable_entity',
    ]);
  });
});

describe('I4, I11: a file that is sent is kept whole, whoever goes', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'headgate-send-'));
    writeFileSync(join(folder, 'file.bin'), FILE);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const common = <Request>(idempotentRequest: unknown) =>
    createGate<Request>({
      limiter: createLimiter({ store: createMemoryStore(), limits: {} }),
      idempotency: createIdempotency({ store: createMemoryClaimStore(), maxKeptBytes: 4_000_000 }),
      account: () => undefined,
      route: () => undefined,
      idempotent: ((request: Request) =>
        (idempotentRequest as typeof onNode.idempotentRequest)(request as never, { scope: 'app_1' })) as never,
    });
  let runs = 0;

  it.each<[string, () => Promise<Served>]>([
    [
      'sendFile of express 5',
      () =>
        listen(
          express().post('/x', onExpress.headgate(common<express.Request>(onNode.idempotentRequest)), (_, response) => {
            runs++;
            response.sendFile(join(folder, 'file.bin'));
          }),
        ),
    ],
    [
      'sendFile of express 4',
      () =>
        listen(
          (express4 as typeof express)().post(
            '/x',
            onExpress.headgate(common<express.Request>(onNode.idempotentRequest)),
            (_, response) => {
              runs++;
              response.sendFile(join(folder, 'file.bin'));
            },
          ),
        ),
    ],
    [
      'a stream of koa',
      () =>
        listen(
          Object.assign(new Koa(), { silent: true })
            .use(onKoa.headgate(common<Koa.Context>(onKoa.idempotentRequest)))
            .use((context) => {
              runs++;
              context.body = createReadStream(join(folder, 'file.bin'));
            })
            .callback(),
        ),
    ],
    [
      'a stream of fastify',
      async () => {
        const app = fastify({ forceCloseConnections: true });
        await app.register(onFastify.headgate(common<FastifyRequest>(onFastify.idempotentRequest)));
        app.post('/x', async (_, reply) => {
          runs++;
          return reply.send(createReadStream(join(folder, 'file.bin')));
        });
        const url = await app.listen({ port: 0, host: '127.0.0.1' });
        return { port: Number(new URL(url).port), close: () => app.close() };
      },
    ],
  ])('%s', async (_name, start) => {
    runs = 0;
    const server = await start();
    open.push(server);
    const ask = (key: string, signal?: AbortSignal) =>
      fetch(`http://127.0.0.1:${server.port}/x`, {
        method: 'POST',
        headers: { 'idempotency-key': key },
        ...(signal && { signal }),
      });
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
