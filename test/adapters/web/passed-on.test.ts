import { Elysia } from 'elysia';
import { type Listening, listen } from 'headgate-testbed/listen';
import { type Context, Hono } from 'hono';
import { expect, it } from 'vitest';
import * as onElysia from '../../../src/adapters/elysia.ts';
import * as onFetch from '../../../src/adapters/fetch.ts';
import * as onHono from '../../../src/adapters/hono.ts';
import { createGate, createIdempotency, createLimiter, type Gate, type GateOptions } from '../../../src/index.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { listenWeb } from '../../support/listen-web.ts';

function gateOf<Request>(idempotentRequest: (request: Request, options: { scope: string }) => unknown): Gate<Request> {
  return createGate<Request>({
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['9/1m'] } }),
    account: () => 'a',
    route: () => 'r',
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    idempotent: ((request: Request) =>
      idempotentRequest(request, { scope: 's' })) as GateOptions<Request>['idempotent'],
  });
}

/**
 * Hono's server with a handler that returns the response of an upstream. The global `Response` of that server uses the
 * fields object it is given.
 */
type Serve = (pass: () => Promise<Response>) => Promise<Listening>;

const SERVERS: Record<string, Serve> = {
  fetch: (pass) => listenWeb(onFetch.withHeadgate(gateOf<Request>(onFetch.idempotentRequest), pass)),
  hono: (pass) => {
    const gate = gateOf<Context>(onHono.idempotentRequest);
    return listenWeb(new Hono().use(onHono.headgate(gate)).post('/', pass).fetch);
  },
  elysia: (pass) => {
    const gate = gateOf<onElysia.ElysiaRequest>(onElysia.idempotentRequest);
    // The suite calls the server by its address, which Elysia rejects as too short a name.
    const app = new Elysia({ handler: { standardHostname: false } });
    return listenWeb(app.use(onElysia.headgate(gate)).post('/', pass).fetch);
  },
};

it.each(
  Object.keys(SERVERS).flatMap((name) => [
    [name, {}, [null, null], ['8', '7']],
    [name, { 'idempotency-key': 'k' }, [null, 'true'], ['8', null]],
  ]) as [string, Record<string, string>, (string | null)[], (string | null)[]][],
)(
  "%s, %o: a response of fetch(), whose fields are immutable, is passed on with the gate's fields",
  async (name, headers, marks, remaining) => {
    const upstream = await listen((_, response) => response.writeHead(202, { 'x-theirs': '1' }).end('passed on'));
    const server = await (SERVERS[name] as Serve)(() => fetch(upstream.url));
    try {
      for (const turn of [0, 1]) {
        const answer = await fetch(server.url, { method: 'POST', headers, body: 'x' });
        expect([answer.status, answer.headers.get('x-theirs'), await answer.text()]).toEqual([202, '1', 'passed on']);
        expect(answer.headers.get('idempotency-replayed')).toBe(marks[turn]);
        expect(answer.headers.get('x-ratelimit-remaining')).toBe(remaining[turn]);
      }
    } finally {
      await server.close();
      await upstream.close();
    }
  },
);
