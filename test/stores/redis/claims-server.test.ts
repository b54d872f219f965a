import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { Cluster, Redis } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { isHeadgateError } from '../../../src/base/errors.ts';
import type { RedisClaimStoreOptions } from '../../../src/stores/redis/claim-options.ts';
import { createRedisClaimStore, type RedisClaimStore } from '../../../src/stores/redis/claims.ts';
import type { RedisClient } from '../../../src/stores/redis/client.ts';
import { claimKey } from '../../../src/stores/redis/keys.ts';
import { slotOf } from '../../../src/stores/redis/server-of.ts';
import { CLIENTS } from '../../support/redis-clients.ts';

let server: RedisServer;
let admin: Redis;
beforeAll(async () => {
  server = await startRedis();
  admin = new Redis({ port: server.port, host: '127.0.0.1' });
  await admin.ping();
});
afterAll(async () => {
  admin.disconnect();
  await server.stop();
});

let stores = 0;
const ID = { scope: 'app', key: 'k' };
const common = { token: 'a', fingerprint: 'f', retentionMs: 60_000 };
const begin = { ...common, leaseMs: 30_000, onOrphan: 'reject', dispatch: false } as const;
const held = { ...common, leaseMs: 30_000, generation: 1 };
const completing = { ...common, result: { status: '200', value: 'sent' } };

interface Connected {
  readonly store: RedisClaimStore;
  readonly key: string;
  readonly errors: Error[];
}

async function connect(name: string, options: RedisClaimStoreOptions = {}): Promise<Connected> {
  const { client, disconnect } = await (CLIENTS[name] as (typeof CLIENTS)[string])(server.port);
  onTestFinished(disconnect);
  const errors: Error[] = [];
  const prefix = `claims-${stores++}`;
  const onError = (error: unknown): void => void errors.push(error as Error);
  const store = createRedisClaimStore(client, { prefix, deadlineMs: 10_000, onError, ...options });
  return { store, key: claimKey(prefix, ID.scope, ID.key), errors };
}

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => value,
    (error: unknown) => error,
  );

describe.each(['ioredis by default', 'node-redis by default'])("on the server's own clock, %s", (name) => {
  it('I5, I9: a lease expires when its time is over, not before', async () => {
    const { store } = await connect(name);
    expect(await store.begin(ID, { ...begin, leaseMs: 200 })).toMatchObject({ kind: 'claimed', generation: 1 });
    const other = { ...begin, token: 'b' };
    const reply = await store.begin(ID, other);
    if (reply.kind === 'in_progress') expect(reply.remainingMs).toBeLessThanOrEqual(200);
    await until(async () => (await store.begin(ID, other)).kind === 'claimed', 'the lease is over');
    expect(await store.dispatch(ID, held)).toEqual({ kind: 'lost' });
    expect(await store.dispatch(ID, { ...held, token: 'b', generation: 2 })).toEqual({ kind: 'ok' });
  });

  it('I8, I9: a record expires after its retention, which each command renews, unless its outcome is unknown', async () => {
    const { store, key } = await connect(name);
    const ttl = async (): Promise<number> => admin.pttl(key);
    const isAbout = async (ms: number): Promise<void> => {
      expect(await ttl()).toBeLessThanOrEqual(ms);
      expect(await ttl()).toBeGreaterThan(ms - 10_000);
    };
    await store.begin(ID, { ...begin, retentionMs: 10 });
    await isAbout(30_000);
    await store.extend(ID, { ...held, retentionMs: 100_000 });
    await isAbout(100_000);
    await store.dispatch(ID, held);
    expect(await ttl()).toBe(-1);
    await store.abandon(ID, { ...common, generation: 1, releasedRetentionMs: 20_000 });
    await isAbout(20_000);
    await store.begin(ID, { ...begin, retentionMs: 70_000 });
    await isAbout(70_000);
    await store.abandon(ID, { ...common, generation: 2, retentionMs: 25_000, releasedRetentionMs: 40_000 });
    await isAbout(25_000);
    await store.complete(ID, { ...completing, retentionMs: 300 });
    expect(await ttl()).toBeLessThanOrEqual(300);
    await until(async () => (await admin.exists(key)) === 0, 'it is forgotten');
    await store.complete(ID, { ...completing, retentionMs: 0 });
    expect(await admin.exists(key)).toBe(0);
  });

  it('one command per step: two for a first call that dispatches with the claim, else three; one for a replay', async () => {
    const { store } = await connect(name);
    await store.inspect(ID);
    await admin.config('RESETSTAT');
    const calls = async (): Promise<number> => {
      const stats = await admin.info('commandstats');
      expect(stats).not.toMatch(/cmdstat_(eval|multi|watch):/);
      const of = (command: string): number =>
        Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
      // Without the notes of claims that take long, which nothing waits for.
      return of('evalsha') - of('zcard');
    };
    const fused = await store.begin(ID, { ...begin, dispatch: true });
    expect(fused).toEqual({ kind: 'claimed', generation: 1, inherited: false, dispatched: true });
    await store.complete(ID, completing);
    expect(await calls()).toBe(2);
    expect((await store.begin(ID, { ...begin, token: 'b' })).kind).toBe('settled');
    expect(await calls()).toBe(3);
    const other = { scope: 'app', key: 'other' };
    await store.begin(other, begin);
    await store.dispatch(other, held);
    await store.complete(other, completing);
    expect(await calls()).toBe(6);
  });

  it('P6: a late begin with dispatch does nothing; a late begin without it claims the key for one lease', async () => {
    const { store, key, errors } = await connect(name, { deadlineMs: 150 });
    await until(
      async () => (await failure(store.inspect(ID))) === undefined,
      'the store knows the time of the server',
      5_000,
    );
    const { late } = store.stats();
    await admin.client('PAUSE', 2_000, 'ALL');
    expect(isHeadgateError(await failure(store.begin(ID, { ...begin, dispatch: true })), 'store_timeout')).toBe(true);
    const plain = { scope: 'app', key: 'plain' };
    expect(isHeadgateError(await failure(store.begin(plain, begin)), 'store_timeout')).toBe(true);
    await until(() => store.stats().late === late + 2, 'both have been executed', 10_000);
    expect(store.stats().lateBegins).toBe(1);
    expect(errors.length).toBeGreaterThanOrEqual(2);
    expect(await admin.exists(key)).toBe(0);
    expect(await admin.hget(key.replace(':k}', ':plain}'), 'dispatched')).toBe('0');
  });

  type Spoil = (key: string) => Promise<unknown>;
  const foreign: readonly [string, Spoil][] = [
    ['of another type', (key) => admin.rpush(key, 'x')],
    ['that is a string', (key) => admin.set(key, 'in_progress')],
    ['that is a hash with other fields', (key) => admin.hset(key, 'name', 'value')],
  ];
  const spoilt: readonly [string, Spoil][] = [
    ...[
      ['state', 'done'],
      ['generation', 'NaN'],
      ['generation', '1e3'],
      ['leaseUntil', ''],
      ['leaseUntil', '99999999999999999999'],
      ['keptUntil', 'never'],
      ['dispatched', 'yes'],
      ['inherited', '2'],
    ].map(([field, value]): [string, Spoil] => [
      `whose ${field} is ${JSON.stringify(value)}`,
      (key) => admin.hset(key, field as string, value as string),
    ]),
    ...[
      'state',
      'fingerprint',
      'owner',
      'generation',
      'dispatched',
      'inherited',
      'leaseUntil',
      'keptUntil',
      'status',
      'value',
    ].map((field): [string, Spoil] => [`without ${field}`, (key) => admin.hdel(key, field)]),
    ['that is completed without a status', (key) => admin.hset(key, 'state', 'completed')],
    ['with a text that is not packed', (key) => admin.hset(key, 'state', 'completed', 'status', 'x')],
  ];

  it.each([
    ...foreign.map(([what, spoil]) => ({ what, spoil, isOurs: false })),
    ...spoilt.map(([what, spoil]) => ({ what, spoil, isOurs: true })),
  ])('a record $what: the error names it, nothing is executed, and other records work', async ({ spoil, isOurs }) => {
    const { store, key, errors } = await connect(name);
    if (isOurs) await store.begin(ID, begin);
    await spoil(key);
    const before = await admin.dump(key);
    for (const token of ['a', 'b', 'a', 'b', 'a', 'b']) {
      const reply = await failure(store.begin(ID, { ...begin, token, onOrphan: 'reexecute', leaseMs: 0 }));
      expect(isHeadgateError(reply, 'store_unavailable')).toBe(true);
      expect((reply as Error).message).toContain(key);
    }
    for (let i = 0; i < 10; i++) {
      expect(await failure(store.begin({ scope: 'app', key: `good-${i}` }, begin))).toMatchObject({ kind: 'claimed' });
      expect(isHeadgateError(await failure(store.inspect(ID)))).toBe(true);
    }
    expect(await admin.dump(key)).toEqual(before);
    expect(errors).toHaveLength(16);
    expect(store.stats().breaker).toBe('closed');
  });

  it('SCRIPT FLUSH under load: only one attempt gets the claim', async () => {
    const { store } = await connect(name);
    const replies = await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        if (i % 10 === 0) await admin.script('FLUSH');
        return store.begin(ID, { ...begin, token: `t${i}` });
      }),
    );
    expect(replies.filter(({ kind }) => kind === 'claimed')).toHaveLength(1);
    expect(store.stats()).toMatchObject({ calls: 100, timeouts: 0, breaker: 'closed' });
  });

  it('I12: maxmemory reached: nothing is claimed, and nothing is partly written', async () => {
    const { store, key } = await connect(name);
    await admin.config('SET', 'maxmemory', '1');
    try {
      expect(((await failure(store.begin(ID, begin))) as Error).message).toMatch(/OOM/);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
    expect(await admin.exists(key)).toBe(0);
    expect(await store.begin(ID, begin)).toMatchObject({ kind: 'claimed', generation: 1 });
  });
});

describe('on a cluster', () => {
  const { clusterPorts } = inject('redis');
  const keys = Array.from({ length: 60 }, (_, i) => ({ scope: `app-${process.pid}`, key: `k${i}` }));

  async function clients(): Promise<[string, RedisClient][]> {
    const ioredis = new Cluster(clusterPorts.map((each) => ({ host: '127.0.0.1', port: each })));
    onTestFinished(() => ioredis.disconnect());
    await ioredis.ping();
    const nodeRedis = createCluster({ rootNodes: clusterPorts.map((each) => ({ url: `redis://127.0.0.1:${each}` })) });
    await nodeRedis.connect();
    onTestFinished(() => nodeRedis.close());
    return [
      ['ioredis', ioredis as unknown as RedisClient],
      ['node-redis', nodeRedis as unknown as RedisClient],
    ];
  }

  it('slots of keys are the same as those that the server computes', async () => {
    const node = new Redis({ port: clusterPorts[0] as number });
    onTestFinished(() => node.disconnect());
    for (const name of [
      'p:{k}',
      claimKey('headgate', 'ü:}', ''),
      ...keys.map(({ scope, key }) => claimKey('p', scope, key)),
    ]) {
      expect(slotOf(name)).toBe(await node.cluster('KEYSLOT', name));
    }
  });

  it('S15: each master has its own time: after one reply of each, every begin dispatches', async () => {
    for (const [name, client] of await clients()) {
      const store = createRedisClaimStore(client, { prefix: `cluster-${name}-${process.pid}`, deadlineMs: 10_000 });
      const dispatched: boolean[] = [];
      for (const id of keys) {
        const reply = await store.begin(id, { ...begin, dispatch: true });
        dispatched.push(reply.kind === 'claimed' && reply.dispatched);
      }
      expect(
        dispatched.filter((each) => !each),
        name,
      ).toHaveLength(clusterPorts.length);
    }
  });
});
