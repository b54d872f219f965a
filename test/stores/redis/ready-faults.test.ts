/** A client that is not connected, or not any more: the stores log it once, and `ready()` waits for the server. */

import { freePort, type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { describe, expect, it, onTestFinished, type TestContext, vi } from 'vitest';
import { createLimiter } from '../../../src/limits/limiter.ts';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { createRedisClaimStore } from '../../../src/stores/redis/claims.ts';
import type { RedisClient } from '../../../src/stores/redis/client.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS, type Connect } from '../../support/redis-clients.ts';

const SUBJECT = { account: 'a', route: 'r' };
const LIMITS = { allMethods: ['1000000/1h'] };
/** On a busy machine, a call that is late would be sent again, and counted. */
const PATIENT_MS = 60_000;
const BEGIN = { token: 't', fingerprint: 'f', leaseMs: 30_000, retentionMs: 60_000, onOrphan: 'reject' } as const;

async function startServer(): Promise<RedisServer> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  return server;
}

/** Clients whose connection is not established when they are returned. */
const CONNECTING: Record<string, (port: number) => RedisClient> = {
  ioredis: (port) => {
    const client = new Redis({ port, host: '127.0.0.1', enableOfflineQueue: false, retryStrategy: () => 50 });
    client.on('error', () => {});
    onTestFinished(() => client.disconnect());
    return client;
  },
  'ioredis that connects with its first command': (port) => {
    const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => 50 });
    client.on('error', () => {});
    onTestFinished(() => client.disconnect());
    return client;
  },
  'node-redis': (port) => {
    const client = createClient({ socket: { port, host: '127.0.0.1', reconnectStrategy: 50 } });
    client.on('error', () => {});
    client.connect().catch(() => {});
    onTestFinished(() => client.destroy());
    return client as unknown as RedisClient;
  },
};

/** Numbers of scripts that a server was told to run: by their hash, and by their source. */
async function scriptsOf({ port }: RedisServer): Promise<{ evalsha: number; eval: number }> {
  const admin = new Redis({ port, host: '127.0.0.1' });
  const stats = await admin.info('commandstats');
  admin.disconnect();
  const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  return { evalsha: calls('evalsha'), eval: calls('eval') };
}

describe.each(Object.entries(CONNECTING))('ready() with a client that connects: %s', (_name, connect) => {
  it('S17: the first decision after it is that of Redis, in one call, and nothing was logged', async () => {
    const server = await startServer();
    const logger = vi.fn();
    const store = createRedisStore(connect(server.port), { logger, deadlineMs: PATIENT_MS });
    await store.ready();
    const before = await scriptsOf(server);
    const limiter = createLimiter({ store, limits: LIMITS });
    expect(await limiter.consume(SUBJECT)).toMatchObject({ accepted: true, degraded: false });
    const after = await scriptsOf(server);
    expect([after.evalsha - before.evalsha, after.eval - before.eval]).toEqual([1, 0]);
    expect(logger).not.toHaveBeenCalled();
  });

  it('I9: the first claim after it is dispatched in one call, because the server has told its time', async () => {
    const server = await startServer();
    const store = createRedisClaimStore(connect(server.port), { deadlineMs: PATIENT_MS });
    await store.ready();
    // The server itself also counts the note about a claim without an outcome, which follows some time later.
    const before = store.stats().calls;
    const id = { scope: 's', key: 'k' };
    expect(await store.begin(id, { ...BEGIN, dispatch: true })).toMatchObject({ kind: 'claimed', dispatched: true });
    expect(store.stats().calls - before).toBe(1);
  });

  it('waits for a server that starts later', async () => {
    const server = await startServer();
    await server.kill();
    const store = createRedisStore(connect(server.port), { logger: false });
    let isReady = false;
    const waiting = store.ready().then(() => (isReady = true));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isReady).toBe(false);
    await server.restart();
    await waiting;
    expect(await createLimiter({ store, limits: LIMITS }).consume(SUBJECT)).toMatchObject({ degraded: false });
  });

  it('rejects after timeoutMs, with what to do', async () => {
    const port = await freePort();
    const store = createRedisStore(connect(port), { logger: false });
    const claims = createRedisClaimStore(connect(port), { logger: false });
    for (const each of [store, claims]) {
      await expect(each.ready({ timeoutMs: 200 })).rejects.toMatchObject({
        code: 'store_unavailable',
        message: expect.stringMatching(/^the store is unavailable: no answer within 200 ms \(.+\)$/),
      });
    }
  });
});

describe('ready()', () => {
  it('says that the client was never connected', async () => {
    const client = createClient({ url: 'redis://127.0.0.1:1' }) as unknown as RedisClient;
    await expect(createRedisStore(client).ready({ timeoutMs: 1 })).rejects.toThrow(
      /the client is not connected: check its 'error' events, its address and password, and that connect\(\) was called/,
    );
  });

  it('names the reason if the server replies with an error, also if the circuit breaker has opened', async () => {
    const server = await startServer();
    const admin = new Redis({ port: server.port, host: '127.0.0.1' });
    await admin.call('ACL', 'SETUSER', 'default', '-@scripting');
    const client = new Redis({ port: server.port, host: '127.0.0.1' });
    client.on('error', () => {});
    onTestFinished(() => {
      admin.disconnect();
      client.disconnect();
    });
    await expect(createRedisStore(client, { logger: false }).ready({ timeoutMs: 800 })).rejects.toThrow(/NOPERM/);
  });

  it('ends with the reason of the signal', async () => {
    const connect = CONNECTING.ioredis as (port: number) => RedisClient;
    const store = createRedisStore(connect(await freePort()));
    const controller = new AbortController();
    const waiting = store.ready({ signal: controller.signal });
    controller.abort(new Error('stop'));
    await expect(waiting).rejects.toThrow('stop');
    await expect(store.ready({ signal: controller.signal })).rejects.toThrow('stop');
  });

  it('ends with timeoutMs and with the signal, although the deadline of the store is later', async () => {
    const server = await startServer();
    const client = (CONNECTING.ioredis as (port: number) => Redis)(server.port);
    const store = createRedisStore(client, { deadlineMs: 20_000, logger: false });
    const claims = createRedisClaimStore(client, { deadlineMs: 20_000, logger: false });
    await store.ready();
    server.freeze();
    const start = performance.now();
    for (const each of [store, claims]) {
      const controller = new AbortController();
      const waiting = each.ready({ signal: controller.signal });
      controller.abort(new Error('stop'));
      await expect(waiting).rejects.toThrow('stop');
      await expect(each.ready({ timeoutMs: 200 })).rejects.toThrow(
        'no answer within 200 ms (the server did not answer)',
      );
    }
    expect(performance.now() - start).toBeLessThan(10_000);
    server.thaw();
    await store.ready();
  });

  it.each([0, -1, 1.5, '10s'])('timeoutMs %j is refused', async (timeoutMs) => {
    const connect = CONNECTING.ioredis as (port: number) => RedisClient;
    const store = createRedisStore(connect(await freePort()));
    await expect(store.ready({ timeoutMs: timeoutMs as number })).rejects.toThrow(/^timeoutMs: must be an integer/);
  });

  it('of a memory store returns at once', () => {
    expect(createMemoryStore().ready()).toBeUndefined();
    expect(createMemoryClaimStore().ready()).toBeUndefined();
  });
});

/** Waits for a connection that is established, and records what a store logs. */
async function loggedOf(connect: Connect<number>, { onTestFinished }: TestContext) {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const { client, disconnect } = await connect(server.port);
  onTestFinished(disconnect);
  const messages: string[] = [];
  const logger = (message: string): void => void messages.push(message);
  const store = createRedisStore(client, { logger, denyCacheMaxMs: 0 });
  const limiter = createLimiter({ store, limits: LIMITS });
  const isDegraded = async () => (await limiter.consume(SUBJECT)).degraded;
  await store.ready();
  return { server, messages, isDegraded };
}

describe('an outage', () => {
  it.concurrent.for(Object.keys(CLIENTS))(
    'S17: is logged once when it begins, and once when it is over: %s',
    async (name, context) => {
      const { server, messages, isDegraded } = await loggedOf(CLIENTS[name] as Connect<number>, context);
      for (let outage = 1; outage <= 2; outage++) {
        await server.kill();
        for (let i = 0; i < 20; i++) expect(await isDegraded()).toBe(true);
        expect(messages).toHaveLength(2 * outage - 1);
        expect(messages.at(-1)).toBe(
          'headgate: the store for rate limits fails, so this process decides with counters of its own',
        );
        await server.restart();
        await until(async () => !(await isDegraded()) && messages.length === 2 * outage, 'the end is logged', 20_000);
        expect(messages.at(-1)).toBe('headgate: the store for rate limits answers again');
        for (let i = 0; i < 20; i++) expect(await isDegraded()).toBe(false);
        expect(messages).toHaveLength(2 * outage);
      }
    },
  );
});

describe('a client that was never connected', () => {
  it.each<[string, () => RedisClient]>([
    ['node-redis', () => createClient({ url: 'redis://127.0.0.1:1' }) as unknown as RedisClient],
    [
      'ioredis',
      () => {
        const client = new Redis({ port: 1, host: '127.0.0.1' });
        client.on('error', () => {});
        onTestFinished(() => client.disconnect());
        return client;
      },
    ],
  ])('is logged with the first decision, once, to the console by default: %s', async (_, newClient) => {
    const written = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => written.mockRestore());
    const limiter = createLimiter({ store: createRedisStore(newClient()), limits: LIMITS });
    for (let i = 0; i < 20; i++) expect(await limiter.consume(SUBJECT)).toMatchObject({ degraded: true });
    expect(written.mock.calls.map(([, text]) => text)).toEqual([
      expect.stringMatching(
        /^headgate: the store for rate limits fails, so .*; connect the client, and await .*: Error: the client is not connected/,
      ),
    ]);
  });

  it('is logged by a claim store, and not with logger: false', async () => {
    const client = createClient({ url: 'redis://127.0.0.1:1' }) as unknown as RedisClient;
    const logger = vi.fn();
    const store = createRedisClaimStore(client, { logger });
    const silent = createRedisClaimStore(client, { logger: false });
    const written = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => written.mockRestore());
    for (let i = 0; i < 3; i++) {
      for (const each of [store, silent])
        await expect(each.inspect({ scope: 's', key: 'k' })).rejects.toMatchObject({ code: 'store_unavailable' });
    }
    expect(logger.mock.calls).toEqual([
      [
        expect.stringMatching(
          /^headgate: the store for idempotency keys fails, so requests with a key are refused, or handled without it \(onStoreFailure\); connect the client, /,
        ),
        new Error('the client is not connected'),
      ],
    ]);
    expect(written).not.toHaveBeenCalled();
  });
});
