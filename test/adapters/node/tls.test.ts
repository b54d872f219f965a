import type { IncomingMessage, ServerResponse } from 'node:http';
import fastify, { type FastifyInstance } from 'fastify';
import { createCertificate } from 'headgate-testbed/certificate';
import Koa from 'koa';
import { Agent, fetch as fetchHttp1 } from 'undici';
import { afterAll, describe, expect, it } from 'vitest';
import * as onFastify from '../../../src/adapters/fastify.ts';
import * as onKoa from '../../../src/adapters/koa.ts';
import * as onNode from '../../../src/adapters/node.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../../src/index.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import type { SuiteServer } from '../../support/adapter-suite/subject.ts';
import { listenHttp2 } from '../../support/http2.ts';
import { listenFastify } from '../../support/listen-fastify.ts';
import { bodyOf } from '../../support/suite-node.ts';

const certificate = createCertificate();
afterAll(() => certificate.remove());

/** Three requests a minute for the account `a`. */
function gateFor<Request>(idempotentRequest: (request: Request, options: { scope: string }) => unknown) {
  return createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['3/1m'] } }),
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    account: () => 'a',
    route: () => 'POST /x',
    idempotent: ((request: Request) =>
      idempotentRequest(request, { scope: 'app_1' })) as GateOptions<Request>['idempotent'],
  });
}

/** The HTTP version of the request, and its body. */
const describeRequest = async ({ httpVersion }: IncomingMessage, body: unknown) => `HTTP/${httpVersion}: ${await body}`;

type Post = { method: string; body: string; headers: Record<string, string> };

const SERVERS: Record<string, () => Promise<SuiteServer>> = {
  'node:http2': () => {
    const handler = async (request: IncomingMessage, response: ServerResponse) =>
      response.end(await describeRequest(request, bodyOf(request)));
    const gate = gateFor<IncomingMessage>(onNode.idempotentRequest);
    return listenHttp2(onNode.withHeadgate(gate, handler), certificate);
  },
  koa: () => {
    const app = new Koa().use(onKoa.headgate(gateFor<Koa.Context>(onKoa.idempotentRequest)));
    app.use(async (context) => {
      context.body = await describeRequest(context.req, bodyOf(context.req));
    });
    return listenHttp2(app.callback(), certificate);
  },
  fastify: () => {
    const { cert, key } = certificate;
    const app = fastify({ http2: true, https: { allowHTTP1: true, cert, key } }) as unknown as FastifyInstance;
    app.register(onFastify.headgate(gateFor(onFastify.idempotentRequest)));
    app.register(async (inner) => void inner.post('/x', ({ raw, body }) => describeRequest(raw, body)));
    return listenFastify(app, cert);
  },
};

describe('a TLS server whose clients choose HTTP/2 or HTTP/1.1 (ALPN)', () => {
  it.each(Object.entries(SERVERS))('S5, I4, I13: both share counts and keys, with %s', async (_, listen) => {
    const server = await listen();
    const dispatcher = new Agent({ connect: { ca: certificate.cert } });
    const over = {
      http1: (url: string, init: Post) => fetchHttp1(url, { ...init, dispatcher }),
      http2: (url: string, init: Post) => (server.fetch ?? fetch)(new Request(url, init)),
    };
    const ask = async (version: keyof typeof over, key: string) => {
      const init = { method: 'POST', body: `for ${key}`, headers: { 'idempotency-key': key } };
      const answer = await over[version](`https://127.0.0.1:${server.port}/x`, init);
      const [replayed, remaining] = ['idempotency-replayed', 'x-ratelimit-remaining'].map((n) => answer.headers.get(n));
      return { status: answer.status, text: await answer.text(), replayed, remaining };
    };
    const fresh = { status: 200, replayed: null };
    const again = { status: 200, replayed: 'true', remaining: null };
    const rejected = { status: 429, replayed: null, remaining: '0' };

    expect(await ask('http2', 'one')).toEqual({ ...fresh, text: 'HTTP/2.0: for one', remaining: '2' });
    expect(await ask('http1', 'one')).toEqual({ ...again, text: 'HTTP/2.0: for one' });
    expect(await ask('http1', 'two')).toEqual({ ...fresh, text: 'HTTP/1.1: for two', remaining: '1' });
    expect(await ask('http2', 'two')).toEqual({ ...again, text: 'HTTP/1.1: for two' });
    expect(await ask('http2', 'six')).toEqual({ ...fresh, text: 'HTTP/2.0: for six', remaining: '0' });
    expect(await ask('http1', 'ten')).toMatchObject(rejected);
    expect(await ask('http2', 'ten')).toMatchObject(rejected);
    await dispatcher.destroy();
    await server.close();
  });
});
