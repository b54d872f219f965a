import { describe, expect, it } from 'vitest';
import { headgate as elysia } from '../../src/adapters/elysia.ts';
import { headgate as express } from '../../src/adapters/express.ts';
import { headgate as fastify } from '../../src/adapters/fastify.ts';
import { headgate as svelte, withHeadgate as withWeb } from '../../src/adapters/fetch.ts';
import { headgate as h3 } from '../../src/adapters/h3.ts';
import { headgate as hono } from '../../src/adapters/hono.ts';
import { headgate as koa } from '../../src/adapters/koa.ts';
import { Headgate, HeadgateGuard, HeadgateModule } from '../../src/adapters/nest.ts';
import { headgate as connect, withHeadgate as withNode } from '../../src/adapters/node.ts';
import { createGate, createLimiter } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { NOT_OPTIONS } from '../support/not-options.ts';

it('a handler that is not a function throws when it is mounted', () => {
  const gate = createGate({
    limiter: createLimiter({ store: createMemoryStore(), limits: { unlimited: true } }),
    account: () => undefined,
    route: () => undefined,
  });
  for (const mount of [withNode, withWeb] as ((gate: unknown, handler: unknown) => unknown)[])
    expect(() => mount(gate, undefined)).toThrow(/^handler: must be a function, got undefined/);
});

const MOUNTS: [string, (gate: never, options?: never) => unknown][] = [
  ['connect', connect],
  ['node', (gate, options) => withNode(gate, () => {}, options)],
  ['express', express],
  ['fastify', fastify],
  ['koa', koa],
  ['hono', hono],
  ['fetch', (gate, options) => withWeb(gate, () => new Response(), options)],
  ['svelte', svelte],
  ['h3', h3],
  ['elysia', elysia],
  ['nest', (gate) => new HeadgateGuard(gate)],
];

it.each(MOUNTS)('%s: a value that is not a gate throws when it is mounted, not with each request', (_name, mount) => {
  for (const wrong of [undefined, {}, Promise.resolve({})]) {
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

const gate = createGate<never>({
  limiter: createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } }),
  account: () => 'a',
  route: () => 'r',
});
const byAddress = { perAddress: ['1/1m'], address: () => '203.0.113.1' };

/** Declares a route with these options in its config, as Fastify does. */
function declareInFastify(given: unknown, options: unknown): void {
  const addHook = (name: string, hook: (route: object) => void) =>
    name === 'onRoute' && hook({ config: { headgate: options } });
  fastify(given as never)({ addHook } as never, {}, () => {});
}

it('elysia: routes are named by templates, and beside limits by address they have only an answer or a rejection', () => {
  for (const name of ['POST /emails', 'emails', '*'])
    expect(() => elysia(gate as never, { routes: { [name]: { limits: ['1/1m'] } } })).toThrow(
      `options.routes: must be named by templates, such as "/api/v1/emails", got ${JSON.stringify(name)}`,
    );
  expect(() => elysia(byAddress, { routes: { '/emails': { limits: ['1/1m'] } } })).toThrow(
    'options.routes["/emails"].limits: unknown option: write it beside perAddress (expected answer or rejection), got an array',
  );
  expect(() => elysia(byAddress, { routes: { '/emails': { answer: () => undefined } } })).not.toThrow();
});

describe.each<[string, unknown]>([
  ['a gate', gate],
  ['limits by address', byAddress],
])('options of a route that are not a plain object throw when they are mounted beside %s', (_, given) => {
  const mounts = MOUNTS.filter(([name]) => name !== 'nest').map(
    ([name, mount]): [string, (options: unknown) => unknown] => [
      name,
      (options) => mount(given as never, options as never),
    ],
  );
  it.each([
    ...mounts,
    ['elysia: routes', (options: unknown) => elysia(given as never, { routes: options as never })],
    ['elysia: a route', (options: unknown) => elysia(given as never, { routes: { '/x': options as never } })],
    ['fastify: config.headgate', (options: unknown) => declareInFastify(given, options)],
    ['nest: @Headgate()', (options: unknown) => Headgate(options as never)],
    ['nest: forRoot()', (options: unknown) => HeadgateModule.forRoot(given as never, options as never)],
    ['nest: forRootAsync()', (options: unknown) => HeadgateModule.forRootAsync(options as never)],
  ])('%s', (_name, mount) => {
    for (const [name, options] of [...NOT_OPTIONS, ['a gate', gate]] as const)
      expect(() => mount(options), name).toThrow(
        expect.objectContaining({
          code: 'invalid_option',
          message: expect.stringMatching(/^(route options|options(\.routes.*)?): must be a plain object/),
        }),
      );
    expect(() => mount({ limit: ['1/1m'] })).toThrow(
      /^(route )?options\S*\.limit: unknown option|options\S*: must be a plain object/,
    );
  });
});
