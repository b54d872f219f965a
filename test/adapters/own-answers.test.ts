import type { IncomingMessage, RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { getRequestListener } from '@hono/node-server';
import {
  createTRPCClient,
  httpBatchLink,
  httpBatchStreamLink,
  httpLink,
  TRPCClientError,
  type TRPCLink,
} from '@trpc/client';
import { initTRPC } from '@trpc/server';
import { fetchRequestHandler } from '@trpc/server/adapters/fetch';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc';
import { listen } from 'headgate-testbed/listen';
import { afterEach, describe, expect, it } from 'vitest';
import * as onFetch from '../../src/adapters/fetch.ts';
import * as onNode from '../../src/adapters/node.ts';
import type { AnswerFunction } from '../../src/gate/index.ts';
import { jsonReply } from '../../src/http/index.ts';
import { createGate, createIdempotency, createLimiter, type Gate } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

/*
 * The samples of docs/answers.md, with the real packages over sockets, on Node's requests and on those of the web.
 */

/** A server of GraphQL. */
type Yoga = RequestListener & { fetch(request: Request): Promise<Response> };

// Its own types would add those of the DOM to the whole project.
const { createSchema, createYoga }: { createSchema(options: object): object; createYoga(options: object): Yoga } =
  createRequire(import.meta.url)('graphql-yoga');

const PLATFORMS = ['node', 'fetch'] as const;
type Platform = (typeof PLATFORMS)[number];

let close: (() => Promise<void>) | undefined;
afterEach(() => close?.());

async function serve(listener: RequestListener): Promise<string> {
  const server = await listen(listener);
  close = server.close;
  return server.url;
}

describe.each(PLATFORMS)('tRPC, headgate/%s', (platform) => {
  const { router, procedure } = initTRPC.create();
  const appRouter = router({ hello: procedure.query(() => 'world'), add: procedure.mutation(() => 'added') });
  type Link = (options: { url: string }) => TRPCLink<typeof appRouter>;

  const answer: AnswerFunction<{ readonly url?: string | undefined }> = ({ status, detail }) => {
    const code = status === 429 ? 'TOO_MANY_REQUESTS' : 'INTERNAL_SERVER_ERROR';
    const data = { code, httpStatus: status };
    return jsonReply(status, { error: { message: detail, code: TRPC_ERROR_CODES_BY_KEY[code], data } });
  };

  async function start(limit: string, link: Link) {
    const options = {
      limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: [limit] } }),
      account: () => 'a',
      route: () => 'trpc',
      cost: ({ url = '' }: { readonly url?: string | undefined }) =>
        1 + (url.split('?', 1)[0]?.match(/,|%2c/gi)?.length ?? 0),
      answer,
    };
    const gate: Gate<IncomingMessage> & Gate<Request> = createGate<{ readonly url?: string | undefined }>(options);
    const respond = (req: Request) => fetchRequestHandler({ endpoint: '', req, router: appRouter });
    const url = await serve(
      platform === 'node'
        ? onNode.withHeadgate(gate, createHTTPHandler({ router: appRouter }))
        : getRequestListener(onFetch.withHeadgate(gate, respond)),
    );
    return { url, client: createTRPCClient<typeof appRouter>({ links: [link({ url })] }) };
  }

  const LINKS: [string, Link][] = [
    ['httpLink', httpLink],
    ['httpBatchLink', httpBatchLink],
    ['httpBatchStreamLink', httpBatchStreamLink],
  ];

  it.each(LINKS)('%s: every call gets a TRPCClientError with httpStatus 429', async (_, link) => {
    const { client } = await start('3/1m', link);
    expect(await Promise.all([client.hello.query(), client.hello.query()])).toEqual(['world', 'world']);
    expect(await client.add.mutate()).toBe('added');
    const calls = [client.hello.query(), client.hello.query(), client.add.mutate()];
    for (const result of await Promise.allSettled(calls)) {
      const reason = result.status === 'rejected' ? result.reason : undefined;
      expect(reason).toBeInstanceOf(TRPCClientError);
      expect(reason.message).toMatch(/^The rate limit is used up; retry in \d+ s\.$/);
      expect(reason).toMatchObject({
        data: { code: 'TOO_MANY_REQUESTS', httpStatus: 429 },
        shape: { code: TRPC_ERROR_CODES_BY_KEY.TOO_MANY_REQUESTS },
      });
      expect(reason.meta.response.headers.get('retry-after')).toMatch(/^\d+$/);
    }
  });

  it.each(['hello,hello,hello', 'hello%2Chello%2chello'])('a batch costs as many as it has calls: %s', async (path) => {
    const { url } = await start('3/1m', httpBatchLink);
    const ask = () => fetch(`${url}/${path}?batch=1&input=%7B%7D`);
    const batch = await ask();
    expect([batch.status, batch.headers.get('x-ratelimit-remaining')]).toEqual([200, '0']);
    expect(await batch.json()).toHaveLength(3);
    expect((await ask()).status).toBe(429);
  });
});

describe.each(PLATFORMS)('GraphQL Yoga, headgate/%s', (platform) => {
  const answer: AnswerFunction<unknown> = ({ status, title, detail }) =>
    jsonReply(
      status,
      { errors: [{ message: detail, extensions: { code: title.toUpperCase().replaceAll(' ', '_') } }] },
      { 'content-type': 'application/graphql-response+json' },
    );

  async function start(limit: string) {
    let sent = 0;
    const schema = createSchema({
      typeDefs: 'type Query { hello: String } type Mutation { send(to: String): Int }',
      resolvers: { Query: { hello: () => 'world' }, Mutation: { send: () => ++sent } },
    });
    const yoga = createYoga({ schema, logging: false });
    const url = await serve(listenerOf(platform, limit, answer, yoga));
    return async (query: string, key?: string) => {
      const answered = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) },
        body: JSON.stringify({ query }),
      });
      const { data, errors } = (await answered.json()) as { data?: unknown; errors?: { extensions: unknown }[] };
      return { answered, result: data ?? errors?.[0]?.extensions };
    };
  }

  it('a rejected operation has errors with a code, and retry-after', async () => {
    const ask = await start('1/1m');
    expect((await ask('{ hello }')).result).toEqual({ hello: 'world' });
    const { answered, result } = await ask('{ hello }');
    expect([answered.status, result]).toEqual([429, { code: 'TOO_MANY_REQUESTS' }]);
    expect(answered.headers.get('content-type')).toBe('application/graphql-response+json');
    expect(answered.headers.get('retry-after')).toBe('60');
  });

  it('I2, I4: a mutation with a key is executed once, and a conflict has errors with a code', async () => {
    const ask = await start('9/1m');
    for (const replayed of [null, 'true']) {
      const { answered, result } = await ask('mutation { send(to: "ann") }', 'k');
      expect([answered.headers.get('idempotency-replayed'), result]).toEqual([replayed, { send: 1 }]);
    }
    const { answered, result } = await ask('mutation { send(to: "bob") }', 'k');
    expect([answered.status, result]).toEqual([409, { code: 'CONFLICT' }]);
  });
});

/** A gate with limits and keys in front of a server of GraphQL. */
function listenerOf(platform: Platform, limit: string, answer: AnswerFunction<unknown>, yoga: Yoga): RequestListener {
  const common = {
    limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: [limit] } }),
    idempotency: createIdempotency({ store: createMemoryClaimStore() }),
    account: () => 'a',
    route: () => 'POST /graphql',
    answer,
  };
  if (platform === 'node') {
    const idempotent = (request: IncomingMessage) => onNode.idempotentRequest(request, { scope: 's' });
    return onNode.withHeadgate(createGate<IncomingMessage>({ ...common, idempotent }), yoga);
  }
  const idempotent = (request: Request) => onFetch.idempotentRequest(request, { scope: 's' });
  const gate = createGate<Request>({ ...common, idempotent });
  return getRequestListener(onFetch.withHeadgate(gate, (request) => yoga.fetch(request)));
}
