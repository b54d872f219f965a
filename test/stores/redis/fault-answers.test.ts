import { patient } from 'headgate-testbed/patience';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { startTcpProxy } from 'headgate-testbed/tcp-proxy';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Decision } from '../../../src/core/decision.ts';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore, type RedisStore, type RedisStoreOptions } from '../../../src/stores/redis/limits.ts';
import { CLIENTS } from '../../support/redis-clients.ts';

const MAX = 100;
const windowSet = createWindowSet([], parseLimit([`${MAX}/1h`]));
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
const newPrefix = (): string => `fault-${stores++}`;

/** A store with its own client, and the errors that were passed to `onError`. */
async function connect(
  name: string,
  options: RedisStoreOptions = {},
  port = server.port,
): Promise<{ store: RedisStore; errors: Error[] }> {
  const { client, disconnect } = await (CLIENTS[name] as (typeof CLIENTS)[string])(port);
  onTestFinished(disconnect);
  const errors: Error[] = [];
  const onError = (error: unknown): void => void errors.push(error as Error);
  return { store: createRedisStore(client, { denyCacheMaxMs: 0, onError, ...options }), errors };
}

const consume = async (store: RedisStore, account = 'acc'): Promise<Decision> =>
  store.consume(account, 'route', windowSet, 1);

describe.each(Object.keys(CLIENTS))('a server that replies with errors, %s', (name) => {
  it('SCRIPT FLUSH under load: no request is counted twice, and no decision is degraded', async () => {
    const { store } = await connect(name, { prefix: newPrefix(), deadlineMs: 5_000 });
    let accepted = 0;
    let left = 400;
    const work = async (): Promise<void> => {
      while (left-- > 0) {
        if (left % 10 === 0) await admin.script('FLUSH');
        if ((await consume(store)).accepted) accepted++;
      }
    };
    await admin.config('RESETSTAT');
    await Promise.all(Array.from({ length: 16 }, work));
    expect(await admin.info('errorstats')).toContain('errorstat_NOSCRIPT');
    expect(accepted).toBe(MAX);
    expect(store.stats()).toMatchObject({ degraded: 0, timeouts: 0, breaker: 'closed' });
  });

  it.each([
    ['of another type', (key: string) => admin.rpush(key, 'x')],
    ['with garbage in it', (key: string) => admin.set(key, 'garbage')],
    ['with garbage of a fitting length', (key: string) => admin.set(key, 'g'.repeat(50))],
    ['with garbage that names a limit', (key: string) => admin.set(key, 'r'.repeat(50))],
  ])('a record %s: the error names it, and only its decisions are degraded', async (_what, spoil) => {
    const prefix = newPrefix();
    const { store, errors } = await connect(name, { prefix });
    const key = `${prefix}:{bad}:r:route`;
    await spoil(key);
    for (let i = 0; i < 10; i++) {
      expect(await consume(store, 'bad')).toMatchObject({ degraded: true, accepted: true });
      expect(await consume(store, 'good')).toMatchObject({ degraded: false, accepted: true });
    }
    expect(store.stats()).toMatchObject({ breaker: 'closed', degraded: 10, timeouts: 0 });
    expect(errors).toHaveLength(10);
    for (const { message } of errors) expect(message).toContain(key);
    await store.reset({ account: 'bad', route: 'route' });
    expect(await consume(store, 'bad')).toMatchObject({ degraded: false, accepted: true });
  });

  it('maxmemory reached: decisions are degraded meanwhile, then the old counts apply', async () => {
    const { store, errors } = await connect(name, { prefix: newPrefix() });
    for (let i = 0; i < 3; i++) await consume(store);
    await admin.config('SET', 'maxmemory', '1');
    try {
      for (let i = 0; i < 10; i++) expect((await consume(store)).degraded).toBe(true);
      expect(errors[0]?.message).toMatch(/OOM/);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
    await until(async () => !(await consume(store)).degraded, 'decides again');
    expect((await store.peek('acc', 'route', windowSet))[0]?.remaining).toBe(MAX - 4);
  });

  it('a read-only replica: decisions are degraded until it is a master again', async () => {
    const { store, errors } = await connect(name, { prefix: newPrefix() });
    await consume(store);
    await admin.call('REPLICAOF', '127.0.0.1', '1');
    try {
      for (let i = 0; i < 10; i++) expect((await consume(store)).degraded).toBe(true);
      expect(errors[0]?.message).toMatch(/READONLY|MASTERDOWN/);
    } finally {
      await admin.call('REPLICAOF', 'NO', 'ONE');
    }
    await until(async () => !(await consume(store)).degraded, 'decides again');
  });

  it('a connection cut in the middle of a reply: the check is answered in time, and no request is counted more often than it was sent', async () => {
    const proxy = await startTcpProxy(server.port);
    onTestFinished(() => proxy.close());
    const { store } = await connect(name, { prefix: newPrefix(), deadlineMs: 200 }, proxy.port);
    await consume(store);
    const before = performance.now();
    proxy.cutAfterBytes = 6;
    const cut = await consume(store);
    expect(performance.now() - before).toBeLessThan(patient(1_200));
    expect(cut.accepted).toBe(true);
    await until(async () => !(await consume(store)).degraded, 'decides again');
    const used = MAX - ((await store.peek('acc', 'route', windowSet))[0]?.remaining as number);
    // The request before, the cut one (twice if the client sends it again), and the one after.
    expect(used).toBeGreaterThanOrEqual(3);
    expect(used).toBeLessThanOrEqual(name.includes('by default') ? 4 : 3);
  });
});
