/** The Redis store over HTTP: `@upstash/redis`, in front of a real Redis server. */
import fc from 'fast-check';
import { type RedisRest, startRedisRest } from 'headgate-testbed/redis-rest';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import type { RedisClient } from '../../../src/stores/redis/client.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import type { UpstashClient } from '../../../src/stores/redis/upstash.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { limitStoreSuite } from '../../../src/testing/limit-store-suite.ts';
import { histories } from '../../support/redis-conformance.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const windowSet = windowSetFrom([], ['7/1m']);
const { installPeers, requirePeer } = await import(
  new URL('../../../packages/bench/src/peers.mjs', import.meta.url).href
);

let rest: RedisRest;
let stores = 0;
let Upstash: new (options: object) => UpstashClient;

beforeAll(async () => {
  installPeers();
  ({ Redis: Upstash } = requirePeer('@upstash/redis'));
  rest = await startRedisRest(inject('redis').port);
});
afterAll(() => rest.close());

const connect = (options: object = {}): UpstashClient =>
  new Upstash({ url: rest.url, token: rest.token, retry: false, enableTelemetry: false, ...options });
const newOptions = () => ({ prefix: `http-${process.pid}-${stores++}`, deadlineMs: 10_000, logger: false as const });

limitStoreSuite({ describe, it }, fc, {
  name: '@upstash/redis',
  histories: histories(60),
  create: (clock) => createRedisStore(connect(), { ...newOptions(), clock }),
});

describe.each([
  ['by default', {}],
  ['without auto-pipelining', { enableAutoPipelining: false }],
  ['without base64', { responseEncoding: false }],
  ['without deserialization', { automaticDeserialization: false }],
])('@upstash/redis %s', (_name, options) => {
  it('accepts as many requests at once as fit', async () => {
    const store = createRedisStore(connect(options), newOptions());
    const decisions = await Promise.all(Array.from({ length: 10 }, () => store.consume('a', 'r', windowSet, 1)));
    expect(decisions.map(({ accepted }) => accepted).filter(Boolean)).toHaveLength(7);
    expect(decisions.map(({ degraded }) => degraded)).not.toContain(true);
  });

  it('sends the source of a script only if the server lacks it', async () => {
    const store = createRedisStore(connect(options), newOptions());
    await store.ready();
    rest.commands.length = 0;
    await store.consume('a', 'r', windowSet, 1);
    await store.consume('b', 'r', windowSet, 1);
    expect(rest.commands).toEqual(['evalsha', 'evalsha']);
  });

  it('blocks, and forgets counters of all accounts', async () => {
    const store = createRedisStore(connect(options), { ...newOptions(), denyCacheMaxMs: 0 });
    await store.block({ account: 'a' }, { forMs: 60_000, reason: 'Gewährt' });
    expect((await store.consume('a', 'r', windowSet, 1)).blocked?.reason).toBe('Gewährt');
    await store.unblock({ account: 'a' });
    await store.consume('a', 'r', windowSet, 7);
    expect((await store.consume('a', 'r', windowSet, 1)).accepted).toBe(false);
    await store.reset({});
    expect((await store.consume('a', 'r', windowSet, 1)).accepted).toBe(true);
  });
});

it('an error names no account: it is the words of the server', async () => {
  const errors: unknown[] = [];
  const options = {
    ...newOptions(),
    onStoreFailure: 'refuse' as const,
    onError: (error: unknown) => errors.push(error),
  };
  for (const enableAutoPipelining of [true, false]) {
    const store = createRedisStore(connect({ token: 'wrong', enableAutoPipelining }), options);
    await expect(Promise.resolve(store.consume('secret-name', 'r', windowSet, 1))).rejects.toMatchObject({
      code: 'store_unavailable',
    });
  }
  expect(errors).toHaveLength(2);
  for (const error of errors) expect(String((error as Error).stack)).not.toContain('secret-name');
});

it('counts in the process if the server does not answer', async () => {
  const unreachable = connect({ url: 'http://127.0.0.1:1' });
  const store = createRedisStore(unreachable, { ...newOptions(), clock: createFakeClock(0) });
  const decisions = [];
  for (let i = 0; i < 8; i++) decisions.push(await store.consume('a', 'r', windowSet, 1));
  expect(decisions.map(({ degraded }) => degraded)).toEqual(Array(8).fill(true));
  expect(decisions.map(({ accepted }) => accepted)).toEqual([...Array(7).fill(true), false]);
});

it('other stores refuse the client', () => {
  expect(() => createRedisClaimStore(connect() as unknown as RedisClient)).toThrow('client: must be a client of');
});
