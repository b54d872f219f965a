import 'reflect-metadata';
import { ApolloDriver } from '@nestjs/apollo';
import { type ExecutionContext, type LoggerService, UseGuards } from '@nestjs/common';
import { GqlExecutionContext, GraphQLModule, Mutation, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { MercuriusDriver } from '@nestjs/mercurius';
import { describe, expect, it } from 'vitest';
import {
  Headgate,
  HeadgateModule,
  idempotentRequest,
  type NestRequest,
  routeOf,
  SkipHeadgate,
} from '../../src/adapters/nest.ts';
import { createGate, createIdempotency, createLimiter, type GateOptions } from '../../src/index.ts';
import { createMemoryClaimStore } from '../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { decorate, type Platform, startNest } from '../support/nest-app.ts';

const SCHEMA = `
  type Query { chats: String, chat: Chat, open: String }
  type Chat { title: String, subtitle: String }
  type Mutation { send: String, note: String, archive: String }
`;

interface Driver {
  readonly platform: Platform;
  /** Options of GraphQLModule. */
  readonly options: object;
}

const withResponse = (req: object, reply: object) => ({ req, reply });
const DRIVERS: Readonly<Record<string, Driver>> = {
  'Apollo on Express': { platform: 'express', options: { driver: ApolloDriver } },
  'Apollo on Fastify': { platform: 'fastify', options: { driver: ApolloDriver, context: withResponse } },
  Mercurius: { platform: 'fastify', options: { driver: MercuriusDriver } },
};

/** Sets the user as an authentication guard does: on the request in the context of GraphQL. */
const authenticated = {
  canActivate(context: ExecutionContext) {
    const { req } = GqlExecutionContext.create(context).getContext<{
      req: NestRequest & { user?: string | undefined };
    }>();
    req.user = req.headers['x-user']?.toString();
    return true;
  },
};

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly data: Record<string, unknown> | null;
  readonly errors?: readonly { message: string; path: string[]; extensions: Record<string, unknown> }[];
}

/** An application whose resolvers are behind an authentication guard of their class. */
async function start(
  { platform, options }: Driver,
  gateOptions: Partial<GateOptions<NestRequest>> = {},
  logger: false | LoggerService = false,
) {
  const runs: string[] = [];
  class Things {
    chats() {
      return 'chats';
    }
    chat() {
      return {};
    }
    open() {
      return 'open';
    }
    async send() {
      return `sent ${runs.push('send')}`;
    }
    async note() {
      return `noted ${runs.push('note')}`;
    }
    async archive() {
      return `archived ${runs.push('archive')}`;
    }
  }
  class Chats {
    title() {
      return 'title';
    }
    subtitle() {
      return 'subtitle';
    }
  }
  for (const name of ['chats', 'chat', 'open']) decorate(Things, name, Query());
  for (const name of ['send', 'note', 'archive']) decorate(Things, name, Mutation());
  for (const name of ['title', 'subtitle']) decorate(Chats, name, ResolveField());
  decorate(Things, 'open', SkipHeadgate());
  decorate(Things, 'note', Headgate({ cost: 2 }));
  Resolver('Things')(Things);
  Resolver('Chat')(Chats);
  UseGuards(authenticated)(Things);

  const gate = createGate<NestRequest & { user?: string | undefined }>({
    logger: false,
    limiter: createLimiter({
      store: createMemoryStore(),
      limits: { allMethods: ['4/1m'], routes: { 'Mutation.archive': ['0/1m'] } },
    }),
    account: async ({ user }) => user,
    route: routeOf,
    ...gateOptions,
  });
  const graphql = { typeDefs: SCHEMA, fieldResolverEnhancers: ['guards', 'interceptors'], ...options };
  const url = await startNest(
    platform,
    {
      imports: [HeadgateModule.forRoot(gate), GraphQLModule.forRoot(graphql as never)],
      providers: [Things, Chats],
    },
    logger,
  );
  const ask = async (query: string, { headers = {}, by = 'POST' }: { headers?: object; by?: string } = {}) => {
    const all = { 'content-type': 'application/json', 'apollo-require-preflight': '1', 'x-user': 'a', ...headers };
    const answer =
      by === 'POST'
        ? await fetch(`${url}/graphql`, { method: by, headers: all, body: JSON.stringify({ query }) })
        : await fetch(`${url}/graphql?query=${encodeURIComponent(query)}`, { headers: all });
    return { status: answer.status, headers: answer.headers, ...((await answer.json()) as object) } as Answer;
  };
  return { ask, runs, url: `${url}/graphql` };
}

const codesOf = ({ errors = [] }: Answer) => errors.map(({ path, extensions }) => [path.join('.'), extensions.code]);
const leftOf = ({ headers }: Answer) => headers.get('x-ratelimit-remaining');

describe.each(Object.entries(DRIVERS))('GraphQL in Nest: %s', (_, driver) => {
  it('a query is limited by the account that a guard of the resolver sets', async () => {
    const { ask } = await start(driver);
    for (const left of ['3', '2', '1', '0']) {
      const answer = await ask('{ chats }');
      expect([answer.data, leftOf(answer)]).toEqual([{ chats: 'chats' }, left]);
    }
    const refused = await ask('{ chats }');
    expect([refused.status, refused.data, refused.errors?.length]).toEqual([200, { chats: null }, 1]);
    expect(refused.errors?.[0]).toMatchObject({
      message: expect.stringContaining('limit'),
      path: ['chats'],
      extensions: {
        code: 'TOO_MANY_REQUESTS',
        type: 'api/too_many_requests',
        status: 429,
        retryAfter: Number(refused.headers.get('retry-after')),
      },
    });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(leftOf(refused)).toBe('0');
    expect(leftOf(await ask('{ chats }', { headers: { 'x-user': 'b' } }))).toBe('3');
  });

  it('an operation without an account is refused', async () => {
    const { ask } = await start(driver, { account: () => undefined });
    const refused = await ask('{ chats }');
    expect(refused.data).toEqual({ chats: null });
    expect(refused.errors?.[0]?.extensions).toMatchObject({ code: 'UNAUTHENTICATED', status: 401 });
  });

  it('each root field counts, so aliases do not multiply an allowance; the others have their data', async () => {
    const { ask } = await start(driver);
    const answer = await ask('{ a: chats b: chats c: chats d: chats e: chats f: chats }');
    expect(Object.values(answer.data ?? {}).filter((value) => value === 'chats')).toHaveLength(4);
    expect(codesOf(answer)).toEqual([
      ['e', 'TOO_MANY_REQUESTS'],
      ['f', 'TOO_MANY_REQUESTS'],
    ]);
    expect([leftOf(answer), Number(answer.headers.get('retry-after')) > 0]).toEqual(['0', true]);
  });

  it('a route is named by its root field, whatever the alias', async () => {
    const { ask, runs } = await start(driver);
    expect(codesOf(await ask('mutation { send, x: archive }'))).toEqual([['x', 'TOO_MANY_REQUESTS']]);
    expect(runs).toEqual(['send']);
  });

  it.each(['mutation { archive send }', 'mutation { send archive }', 'mutation { a: send archive b: send }'])(
    'S6: the response shows the window that rejected a field, at any place: %s',
    async (operation) => {
      const { ask } = await start(driver);
      const answer = await ask(operation);
      expect(codesOf(answer)).toEqual([['archive', 'TOO_MANY_REQUESTS']]);
      expect([answer.headers.get('x-ratelimit-limit'), leftOf(answer)]).toEqual(['0', '0']);
    },
  );

  it('GET and POST share one allowance', async () => {
    const { ask } = await start(driver);
    expect([leftOf(await ask('{ chats }')), leftOf(await ask('{ chats }', { by: 'GET' }))]).toEqual(['3', '2']);
  });

  it('fields below the root belong to their root field, also if enhancers run for them', async () => {
    const { ask } = await start(driver);
    const answer = await ask('{ chat { title subtitle } }');
    expect([answer.data, leftOf(answer)]).toEqual([{ chat: { title: 'title', subtitle: 'subtitle' } }, '3']);
  });

  it('@Headgate and @SkipHeadgate work on resolvers', async () => {
    const { ask } = await start(driver);
    expect([leftOf(await ask('mutation { note }')), leftOf(await ask('{ open }'))]).toEqual(['2', null]);
  });

  it('I4: the key is for the HTTP request: a retry gets the whole response, and no field runs again', async () => {
    const idempotency = createIdempotency({ store: createMemoryClaimStore() });
    const idempotent = (request: NestRequest) => idempotentRequest(request, { scope: 'app_1' });
    const { ask, runs } = await start(driver, { idempotency, idempotent });
    const headers = { 'idempotency-key': 'k' };
    const first = await ask('mutation { a: send b: send c: send }', { headers });
    expect(first.data).toEqual({ a: 'sent 1', b: 'sent 2', c: 'sent 3' });
    const again = await ask('mutation { a: send b: send c: send }', { headers });
    expect([again.data, again.headers.get('idempotency-replayed')]).toEqual([first.data, 'true']);
    const other = await ask('mutation { a: send }', { headers });
    expect([other.data, codesOf(other)]).toEqual([{ a: null }, [['a', 'CONFLICT']]]);
    expect(other.errors?.[0]?.extensions.type).toBe('errors/already_used');
    expect(runs).toHaveLength(3);
    expect(leftOf(await ask('mutation { send }'))).toBe('0');
  });

  it('I6: a first field that is rejected claims no key; the next one does', async () => {
    const idempotency = createIdempotency({ store: createMemoryClaimStore() });
    const idempotent = (request: NestRequest) => idempotentRequest(request, { scope: 'app_1' });
    const { ask, runs } = await start(driver, { idempotency, idempotent });
    const headers = { 'idempotency-key': 'k' };
    for (const replayed of [null, 'true']) {
      const answer = await ask('mutation { archive send }', { headers });
      expect([answer.data, answer.headers.get('idempotency-replayed')]).toEqual([
        { archive: null, send: 'sent 1' },
        replayed,
      ]);
    }
    expect(runs).toEqual(['send']);
  });

  it('a failure of a resolver of the gate is an error of the field, and no field runs', async () => {
    const account = () => {
      throw new Error('boom');
    };
    const { ask, runs } = await start(driver, { account });
    const answer = await ask('mutation { send }');
    expect([answer.data, codesOf(answer), runs]).toEqual([{ send: null }, [['send', 'INTERNAL_SERVER_ERROR']], []]);
  });

  it('Nest does not log a rejection as an error of the program', async () => {
    const logged: unknown[] = [];
    const log = (...given: unknown[]) => void logged.push(given);
    const { ask } = await start(driver, {}, { log: () => {}, error: log, warn: log });
    expect(codesOf(await ask('mutation { archive }'))).toEqual([['archive', 'TOO_MANY_REQUESTS']]);
    expect(logged).toEqual([]);
  });
});

it('without a response in the context, an operation fails and says what is missing', async () => {
  const { ask, runs } = await start({ platform: 'fastify', options: { driver: ApolloDriver } });
  const { errors } = await ask('mutation { send }');
  expect(errors?.[0]?.message).toMatch(
    /^headgate: Mutation\.send has no HTTP request and response .* \{ req, reply \} /,
  );
  expect(runs).toEqual([]);
});

it('I4: operations of one HTTP request share the key: a batch is stored and replayed as a whole', async () => {
  const { url, runs } = await start(
    { platform: 'express', options: { driver: ApolloDriver, allowBatchedHttpRequests: true } },
    {
      idempotency: createIdempotency({ store: createMemoryClaimStore() }),
      idempotent: (request) => idempotentRequest(request, { scope: 'app_1' }),
    },
  );
  const headers = { 'content-type': 'application/json', 'x-user': 'a', 'idempotency-key': 'k' };
  const body = JSON.stringify([{ query: 'mutation { send }' }, { query: 'mutation { archive note }' }]);
  const ask = async () => {
    const answer = await fetch(url, { method: 'POST', headers, body });
    return { replayed: answer.headers.get('idempotency-replayed'), answers: (await answer.json()) as Answer[] };
  };
  const first = await ask();
  expect([first.replayed, first.answers.map(({ data }) => data)]).toEqual([
    null,
    [{ send: 'sent 1' }, { archive: null, note: 'noted 2' }],
  ]);
  expect(await ask()).toEqual({ replayed: 'true', answers: first.answers });
  expect(runs).toEqual(['send', 'note']);
});
