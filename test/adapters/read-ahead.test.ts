import type { IncomingMessage, RequestListener } from 'node:http';
// @ts-expect-error the package has no types
import koaMulter from '@koa/multer';
import Router from '@koa/router';
import connect from 'connect';
import express from 'express';
// @ts-expect-error has no types under this name
import express4 from 'express-4';
import { afterFile } from 'headgate-testbed/after-file';
import { listen } from 'headgate-testbed/listen';
import Koa from 'koa';
import multer from 'multer';
import { describe, expect, it } from 'vitest';
import * as onExpress from '../../src/adapters/express.ts';
import * as onKoa from '../../src/adapters/koa.ts';
import * as onNode from '../../src/adapters/node.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

const SCOPE = { scope: 'app_1' };

function gateOf<Request>(
  options: Pick<GateOptions<Request>, 'route' | 'idempotent'> & Partial<GateOptions<Request>>,
  failures: string[],
) {
  return createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['50/1m'] } }),
    account: () => 'a',
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    logger: false,
    onEvent: (event) => event.type === 'failure' && failures.push(String(event.error)),
    ...options,
  });
}

interface Mounting {
  /** Whether `readAhead()` is in front of the parsers. */
  readonly ahead: boolean;
  readonly failures: string[];
  /** Called by the handler with the parsed body. Returns what the handler sends. */
  handle(body: unknown): string;
}

/** Applications with parsers in front of all routes. */
const APPS: Readonly<Record<string, (mounting: Mounting) => RequestListener>> = {
  'Express 5': expressApp(express),
  'Express 4': expressApp(express4 as typeof express),
  Koa: ({ ahead, failures, handle }) => {
    const idempotent = (context: Koa.Context) => onKoa.idempotentRequest(context, SCOPE);
    const gate = gateOf<Koa.Context>({ route: onKoa.routeOf, idempotent }, failures);
    const app = new Koa();
    if (ahead) app.use(onKoa.readAhead({ maxBytes: 5_000 })).use(onKoa.headgate({ perAddress: ['99/1m'] }));
    app.use(koaMulter().none());
    const router = new Router();
    router.post('/emails', onKoa.headgate<Koa.Context>(gate), (context) => {
      context.body = handle((context.request as { body?: unknown }).body);
    });
    return app.use(router.routes()).callback();
  },
  Connect: ({ ahead, failures, handle }) => {
    const idempotent = (request: IncomingMessage) => onNode.idempotentRequest(request, SCOPE);
    const gate = gateOf<IncomingMessage>({ route: () => 'POST /emails', idempotent }, failures);
    const app = connect();
    if (ahead) app.use(onNode.readAhead({ maxBytes: 5_000 })).use(onNode.headgate({ perAddress: ['99/1m'] }));
    app.use(multer().none() as connect.NextHandleFunction);
    app.use(onNode.headgate(gate));
    app.use((request: IncomingMessage & { body?: unknown }, response) => response.end(handle(request.body)));
    return app;
  },
};

function expressApp(create: typeof express) {
  return ({ ahead, failures, handle }: Mounting): RequestListener => {
    const idempotent = (request: express.Request) => onExpress.idempotentRequest(request, SCOPE);
    // The account is in the body that the parser has read.
    const account = ({ body }: express.Request) => body.to;
    const gate = gateOf<express.Request>({ route: onExpress.routeOf, idempotent, account }, failures);
    const app = create().set('env', 'test');
    // A gate without keys, in front of the parsers, must leave the body to the one with keys.
    if (ahead) app.use(onExpress.readAhead({ maxBytes: 5_000 }), onExpress.headgate({ perAddress: ['99/1m'] }));
    app.use(express.json(), multer().none());
    return app.post(
      '/emails',
      onExpress.headgate(gate),
      (request, response) => void response.send(handle(request.body)),
    );
  };
}

async function start(app: (mounting: Mounting) => RequestListener, ahead = true) {
  const bodies: unknown[] = [];
  const failures: string[] = [];
  const handle = (body: unknown) => `sent ${bodies.push(body)}`;
  const { url, close } = await listen(app({ ahead, failures, handle }));
  afterFile(close);
  const post = async (body: FormData | string, key?: string) => {
    const headers = {
      ...(typeof body === 'string' && { 'content-type': 'application/json' }),
      ...(key && { 'idempotency-key': key }),
    };
    const answer = await fetch(`${url}/emails`, { method: 'POST', headers, body });
    return [answer.status, await answer.text(), answer.headers.get('idempotency-replayed')] as const;
  };
  return { post, bodies, failures };
}

const form = (to: string) => {
  const data = new FormData();
  data.append('to', to);
  return data;
};

describe.each(Object.entries(APPS))('%s: readAhead() in front of parsers of the whole application', (_, app) => {
  it('I13: keys work behind the parsers, and the handler gets the parsed body', async () => {
    const { post, bodies } = await start(app);
    expect(await post(form('ann'), 'k')).toEqual([200, 'sent 1', null]);
    // Each form has a boundary of its own.
    expect(await post(form('ann'), 'k')).toEqual([200, 'sent 1', 'true']);
    expect((await post(form('bob'), 'k'))[0]).toBe(409);
    expect(await post(form('bob'))).toEqual([200, 'sent 2', null]);
    expect(bodies).toEqual([{ to: 'ann' }, { to: 'bob' }]);
  });

  it('a body with a key that is too long is rejected with 413', async () => {
    const { post, bodies } = await start(app);
    const [status, problem] = await post(form('x'.repeat(6_000)), 'k');
    expect([status, JSON.parse(problem)]).toMatchObject([413, { type: 'errors/payload_too_large', status: 413 }]);
    expect(bodies).toEqual([]);
  });

  it('without it the answer is a 500, and the error says what to mount', async () => {
    const { post, bodies, failures } = await start(app, false);
    expect((await post(form('ann'), 'k'))[0]).toBe(500);
    expect(failures).toEqual([
      'BodyError: The body was already read: mount the gate, or readAhead(), before anything that reads it.',
    ]);
    expect(bodies).toEqual([]);
  });
});

it.each(['Express 5', 'Express 4'])('%s: express.json() of the whole application', async (name) => {
  const { post, bodies } = await start(APPS[name] as (mounting: Mounting) => RequestListener);
  expect(await post('{"to":"ann","n":1}', 'k')).toEqual([200, 'sent 1', null]);
  expect(await post('{"n":1,"to":"ann"}', 'k')).toEqual([200, 'sent 1', 'true']);
  expect((await post('{"n":2,"to":"ann"}', 'k'))[0]).toBe(409);
  expect(bodies).toEqual([{ to: 'ann', n: 1 }]);
});

it.each([
  ['node', onNode.readAhead],
  ['express', onExpress.readAhead],
  ['koa', onKoa.readAhead],
])('%s: a wrong option of readAhead is an OptionError at the start', (_, readAhead) => {
  expect(() => readAhead({ maxBytes: Number.NaN })).toThrow(/^maxBytes: must be a whole number of bytes, .* got NaN/);
  expect(() => readAhead({ idleMs: 0 })).toThrow(/^idleMs: must be a whole number of milliseconds, .* got 0/);
});
