import { expect, it } from 'vitest';
import { headgate as elysia } from '../../src/adapters/elysia.ts';
import { headgate as express } from '../../src/adapters/express.ts';
import { headgate as fastify } from '../../src/adapters/fastify.ts';
import { headgate as svelte, withHeadgate as withWeb } from '../../src/adapters/fetch.ts';
import { headgate as h3 } from '../../src/adapters/h3.ts';
import { headgate as hono } from '../../src/adapters/hono.ts';
import { headgate as koa } from '../../src/adapters/koa.ts';
import { HeadgateGuard } from '../../src/adapters/nest.ts';
import { headgate as connect, withHeadgate as withNode } from '../../src/adapters/node.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';

it('a handler that is not a function throws when it is mounted', () => {
  const gate = createGate({
    limiter: createLimiter({ store: createMemoryStore(), limits: { unlimited: true } }),
    account: () => undefined,
    route: () => undefined,
  });
  for (const mount of [withNode, withWeb] as ((gate: unknown, handler: unknown) => unknown)[])
    expect(() => mount(gate, undefined)).toThrow(/^handler: must be a function, got undefined/);
});

it.each<[string, (gate: never) => unknown]>([
  ['connect', connect],
  ['node', (gate) => withNode(gate, () => {})],
  ['express', express],
  ['fastify', fastify],
  ['koa', koa],
  ['hono', hono],
  ['fetch', (gate) => withWeb(gate, () => new Response())],
  ['svelte', svelte],
  ['h3', h3],
  ['elysia', elysia],
  ['nest', (gate) => new HeadgateGuard(gate)],
])('%s: a value that is not a gate throws when it is mounted, not with each request', (_name, mount) => {
  for (const wrong of [undefined, {}]) {
    expect(() => mount(wrong as never)).toThrow(
      /^gate: must be what createGate\(\) returns, or \{ perAddress: \["100\/1m"\] \}, got /,
    );
  }
  const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } });
  expect(() => mount(limiter as never)).toThrow(/^gate: must not be a limiter: pass createGate\(\{ limiter, … \}\)/);
  expect(() => mount({ store: createMemoryStore(), perAdress: ['1/1m'] } as never)).toThrow(
    /or \{ perAddress: \["100\/1m"\] \}, which has no option perAdress, got an object$/,
  );
});
