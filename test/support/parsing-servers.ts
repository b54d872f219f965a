import { readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import fastifyMultipart, { type MultipartFile } from '@fastify/multipart';
// @ts-expect-error the package has no types
import koaMulter from '@koa/multer';
import Router from '@koa/router';
import busboy from 'busboy';
import type express from 'express';
import fastify, { type FastifyRequest } from 'fastify';
import formidable from 'formidable';
import Koa from 'koa';
import multer from 'multer';
import * as onExpress from '../../src/adapters/express.ts';
import * as onFastify from '../../src/adapters/fastify.ts';
import * as onKoa from '../../src/adapters/koa.ts';
import * as onNode from '../../src/adapters/node.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { listenFastify } from './listen-fastify.ts';
import type { Start } from './versions.ts';

/**
 * A gate with the account in the body, and with idempotency keys: both read the body before the framework's parser
 * does.
 */
function gateFor<Request>(
  on: {
    idempotentRequest: (request: Request, options: { scope: string; maxBytes: number }) => unknown;
    fieldOfBody: (request: Request, name: string, options: { maxBytes: number }) => Promise<string>;
  },
  route: (request: Request) => string | undefined,
) {
  const maxBytes = 4_000_000;
  return createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1000/1m'] } }),
    idempotency: createIdempotency({ store: createMemoryClaimStore(), maxKeptBytes: 4_000_000 }),
    account: (request) => on.fieldOfBody(request, 'account_id', { maxBytes }),
    route,
    idempotent: ((request: Request) =>
      on.idempotentRequest(request, { scope: 'app_1', maxBytes })) as GateOptions<Request>['idempotent'],
  });
}

/** Larger than an HTTP/2 flow-control window and than the buffer of a stream. */
const FILE = Buffer.alloc(1_500_000, Buffer.from([0, 255, 13, 10, 45, 45, 98]));
const NAME = 'ü.bin';
export const form = (): FormData => {
  const data = new FormData();
  data.append('account_id', 'a');
  data.append('file', new Blob([FILE]), NAME);
  return data;
};
const found = (account: unknown, name: unknown, file: Buffer) => ({
  account,
  name,
  size: file.length,
  same: file.equals(FILE),
});
/** What every parser must find in {@link form}. */
export const FOUND = found('a', NAME, FILE);

/** Parses a request, and returns what {@link FOUND} has. */
export type Parse = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Serves a parser behind a gate, directly on `node:http` or `node:http2`. */
export const onServer =
  (parse: Parse): Start =>
  ({ serve }) =>
    serve(
      onNode.withHeadgate(
        gateFor<IncomingMessage>(onNode, () => 'POST /x'),
        async (request, response) => void response.end(JSON.stringify(await parse(request, response))),
      ),
    );

export const onApp =
  (create: typeof express, ...handlers: express.RequestHandler[]): Start =>
  ({ serve }) => {
    const gate = gateFor<express.Request>(onExpress, onExpress.routeOf);
    return serve(create().post('/x', onExpress.headgate(gate), ...handlers));
  };

const onKoaApp =
  (options: multer.Options): Start =>
  ({ serve }) => {
    const gate = gateFor<Koa.Context>(onKoa, onKoa.routeOf);
    const router = new Router();
    router.post('/x', onKoa.headgate<Koa.Context>(gate), koaMulter(options).single('file'), (context) => {
      context.body = ofMulter({ ...context.request, file: context.file } as never);
    });
    return serve(new Koa().use(router.routes()).callback());
  };

export const onFastifyApp =
  (options: object, parse: (request: FastifyRequest) => Promise<unknown>): Start =>
  ({ http2 }) => {
    const app = fastify({ http2: http2 as false, forceCloseConnections: true, bodyLimit: 4_000_000 });
    app.register(onFastify.headgate(gateFor<FastifyRequest>(onFastify, onFastify.routeOf)));
    app.register(fastifyMultipart, { ...options, limits: { fileSize: 4_000_000 } });
    app.register(async (inner) => void inner.post('/x', parse));
    return listenFastify(app);
  };

/** Runs a middleware, and reads what it has set on the request. */
export const behind =
  (middleware: () => express.RequestHandler, read: (request: express.Request) => unknown): Parse =>
  (request, response) =>
    new Promise((resolve, reject) => {
      const next = (error?: unknown) => (error ? reject(error) : resolve(read(request as express.Request)));
      middleware()(request as express.Request, response as express.Response, next);
    });

export const upload = (options: multer.Options = {}) => multer({ defParamCharset: 'utf8', ...options }).single('file');
/** Reads and removes a file that a parser wrote to the disk. */
function readAndRemove(path = ''): Buffer {
  const bytes = readFileSync(path);
  rmSync(path);
  return bytes;
}
export const ofMulter = ({ body, file }: Pick<express.Request, 'body' | 'file'>) =>
  found(body.account_id, file?.originalname, file?.buffer ?? readAndRemove(file?.path));

/** Real parsers of multipart forms; each must work over HTTP/1 and HTTP/2. */
export const MULTIPART_PARSERS: Record<string, Start> = {
  multer: onServer(behind(upload, ofMulter)),
  'multer, to the disk': onServer(behind(() => upload({ dest: tmpdir() }), ofMulter)),
  '@koa/multer': onKoaApp({ defParamCharset: 'utf8' }),
  '@koa/multer, to the disk': onKoaApp({ defParamCharset: 'utf8', dest: tmpdir() }),
  '@fastify/multipart': onFastifyApp({ attachFieldsToBody: true }, async (request) => {
    const { account_id, file } = request.body as { account_id: { value: string }; file: MultipartFile };
    return found(account_id.value, file.filename, await file.toBuffer());
  }),
  '@fastify/multipart, to the disk': onFastifyApp({}, async (request) => {
    const { files, values } = await request.saveRequestFiles();
    const { value } = values.account_id as { value: string };
    return found(value, files[0]?.filename, readFileSync(files[0]?.filepath as string));
  }),
  busboy: onServer(
    (request) =>
      new Promise((resolve) => {
        const chunks: Buffer[] = [];
        let account: string | undefined;
        let name: string | undefined;
        const parser = busboy({ headers: request.headers, defParamCharset: 'utf8' });
        parser.on('field', (_name, value) => {
          account = value;
        });
        parser.on('file', (_name, file, { filename }) => {
          name = filename;
          file.on('data', (chunk: Buffer) => chunks.push(chunk));
        });
        parser.on('close', () => resolve(found(account, name, Buffer.concat(chunks))));
        request.pipe(parser);
      }),
  ),
  formidable: onServer(async (request) => {
    const [fields, { file: [file] = [] }] = await formidable({}).parse(request);
    return found(fields.account_id?.[0], file?.originalFilename, readAndRemove(file?.filepath));
  }),
};
