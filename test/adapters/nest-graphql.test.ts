import 'reflect-metadata';
import { ApolloDriver } from '@nestjs/apollo';
import { type ExecutionContext, HttpException, UseGuards } from '@nestjs/common';
import { GqlExecutionContext, GraphQLModule, Mutation, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { expect, it } from 'vitest';
import { HeadgateModule, type NestRequest, routeOf, SkipHeadgate } from '../../src/adapters/nest.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { decorate, startNest } from '../support/nest-app.ts';

const SCHEMA = `
  type Query { chats: String, chat: Chat }
  type Chat { title: String }
  type Mutation { archive: String }
`;

interface Answer {
  readonly data: Record<string, unknown> | null;
  readonly errors?: readonly { message: string; path: string[]; extensions: Record<string, unknown> }[];
}

/** An application with a gate and Apollo on Express, whose resolvers have these decorators. */
async function start(...decorators: readonly ClassDecorator[]) {
  const runs: string[] = [];
  class Things {
    chats() {
      return `chats ${runs.push('chats')}`;
    }
    chat() {
      return {};
    }
    archive() {
      return `archived ${runs.push('archive')}`;
    }
  }
  class Chats {
    title() {
      return 'title';
    }
  }
  decorate(Things, 'chats', Query());
  decorate(Things, 'chat', Query());
  decorate(Things, 'archive', Mutation());
  decorate(Chats, 'title', ResolveField());
  Resolver('Things')(Things);
  Resolver('Chat')(Chats);
  for (const decorator of decorators) for (const type of [Things, Chats]) decorator(type);
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['9/1m'] } });
  const gate = createGate<NestRequest>({ limiter, account: () => 'a', route: routeOf, logger: false });
  const graphql = { driver: ApolloDriver, typeDefs: SCHEMA, fieldResolverEnhancers: ['guards', 'interceptors'] };
  const logged: unknown[] = [];
  const log = (...given: unknown[]) => void logged.push(given);
  const url = await startNest(
    'express',
    {
      imports: [HeadgateModule.forRoot(gate), GraphQLModule.forRoot(graphql as never)],
      providers: [Things, Chats],
    },
    { log: () => {}, error: log, warn: log },
  );
  const ask = async (query: string, account = 'a') => {
    const headers = { 'content-type': 'application/json', 'x-account': account };
    const answer = await fetch(`${url}/graphql`, { method: 'POST', headers, body: JSON.stringify({ query }) });
    return (await answer.json()) as Answer;
  };
  return { ask, runs, logged };
}

/** The guard of docs/adapters/nest.md. */
function fieldLimits() {
  const limits = { allMethods: ['2/1m'], routes: { 'Mutation.archive': ['0/1m'] } };
  const limiter = createLimiter({ store: createMemoryStore(), limits });
  return {
    async canActivate(context: ExecutionContext) {
      const graphql = GqlExecutionContext.create(context);
      const { parentType, fieldName, path } = graphql.getInfo();
      if (path.prev !== undefined) return true;
      const account: string = graphql.getContext().req.headers['x-account'];
      const decision = await limiter.consume({ account, route: `${parentType.name}.${fieldName}` });
      if (decision.accepted) return true;
      const rejection = new HttpException('The rate limit is used up.', 429);
      throw Object.assign(rejection, { extensions: { code: 'TOO_MANY_REQUESTS' } });
    },
  };
}

it('a resolver of GraphQL behind a gate is refused, and the error says what to do', async () => {
  const { ask, runs } = await start();
  const { data, errors } = await ask('{ chats }');
  expect([data, runs]).toEqual([{ chats: null }, []]);
  expect(errors?.[0]?.message).toMatch(/Things\.chats is called by "graphql": mark it with @SkipHeadgate\(\)/);
});

it('the guard of the recipe charges each root field by its name, in data and errors of one answer', async () => {
  const { ask, runs, logged } = await start(SkipHeadgate(), UseGuards(fieldLimits()));
  const { data, errors = [] } = await ask('{ a: chats b: chats c: chats }');
  expect(data).toEqual({ a: 'chats 1', b: 'chats 2', c: null });
  expect(errors.map(({ path, extensions }) => [path, extensions.code])).toEqual([[['c'], 'TOO_MANY_REQUESTS']]);
  expect((await ask('mutation { x: archive }', 'b')).errors?.[0]?.extensions.code).toBe('TOO_MANY_REQUESTS');
  expect(runs).toEqual(['chats', 'chats']);
  expect(logged).toEqual([]);
});

it('the guard of the recipe lets fields below the root pass, and another account has an allowance of its own', async () => {
  const { ask } = await start(SkipHeadgate(), UseGuards(fieldLimits()));
  for (const account of ['a', 'a', 'b']) {
    expect(await ask('{ chat { title } }', account)).toEqual({ data: { chat: { title: 'title' } } });
  }
  expect((await ask('{ chat { title } }')).data).toEqual({ chat: null });
});
