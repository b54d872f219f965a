/** How the Redis stores list claims: on which keys, in how many commands, and after a restart. */
import { Cluster, Redis } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { ClaimPage, ListedClaim } from '../../../src/core/ports.ts';
import { createRedisClaimStore, type RedisClaimStore } from '../../../src/stores/redis/claims.ts';
import type { RedisClient } from '../../../src/stores/redis/client.ts';
import { claimKey, claimPattern, parseClaimKey } from '../../../src/stores/redis/keys.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS_5, CLUSTER_CLIENTS_5, type ConnectedClient } from '../../support/redis-clients.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const { port, clusterPorts } = inject('redis');
const redis = new Redis({ port });
const ioredisCluster = new Cluster(clusterPorts.map((each) => ({ host: '127.0.0.1', port: each })));
const nodeRedisCluster = createCluster({
  rootNodes: clusterPorts.map((each) => ({ url: `redis://127.0.0.1:${each}` })),
});
beforeAll(async () => {
  await Promise.all([redis.ping(), ioredisCluster.ping(), nodeRedisCluster.connect()]);
});
afterAll(async () => {
  redis.disconnect();
  ioredisCluster.disconnect();
  await nodeRedisCluster.close();
});

let prefixes = 0;
const newPrefix = (): string => `list-${process.pid}-${prefixes++}`;
const storeOf = (client: RedisClient, prefix: string): RedisClaimStore =>
  createRedisClaimStore(client, { prefix, deadlineMs: 10_000 });
const sentBy = (token: string) => ({ token, fingerprint: 'the-fingerprint', retentionMs: 600_000 });
const begin = (store: RedisClaimStore, scope: string, key: string, dispatch = true) =>
  store.begin({ scope, key }, { ...sentBy('the-owner'), leaseMs: 60_000, onOrphan: 'reject', dispatch });

async function scan(store: RedisClaimStore, count = 1_000, onPage?: (page: ClaimPage) => void): Promise<ListedClaim[]> {
  const claims: ListedClaim[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list(cursor, count);
    onPage?.(page);
    claims.push(...page.claims);
    cursor = page.next;
  } while (cursor !== undefined);
  return claims;
}
const keysOf = (claims: readonly ListedClaim[]): string[] => [...new Set(claims.map(({ key }) => key))].sort();

/** Every record of a prefix. The order of the fields is no part of it, because Redis changes that by itself. */
async function recordsOf(prefix: string): Promise<Map<string, unknown>> {
  const keys = (await redis.keys('*')).filter((key) => key.startsWith(`${prefix}:`)).sort();
  const records = await Promise.all(
    keys.map(async (key): Promise<[string, unknown]> => {
      const fields = Object.entries(await redis.hgetall(key)).sort();
      return [key, { fields, expiresAt: await redis.pexpiretime(key) }];
    }),
  );
  return new Map(records);
}

describe('the name of a claim', () => {
  it.each(['', ':', '%', '%003a', '{', '}', 'a:b', '\ud800', '*[?]\\', 'ü'])('is read as it was made: %j', (text) => {
    for (const id of [
      { scope: text, key: 'k' },
      { scope: 'a', key: text },
    ])
      expect(parseClaimKey('p', claimKey('p', id.scope, id.key))).toEqual(id);
  });

  it.each(['p:claim:{a}', 'p:claim:{a:b', 'p:claim:{a:b}c', 'p:claim:{%:%0025x}}', 'q:claim:{a:b}', 'p:claim:{:b}'])(
    'is none of headgate: %s',
    (name) => expect(parseClaimKey('p', name)).toBeUndefined(),
  );

  it('is matched literally', () => {
    expect(claimPattern('a*[b]?\\^')).toBe('a\\*\\[b\\]\\?\\\\\\^:claim:{*}');
  });
});

describe('a list', () => {
  it('has the claims of its own prefix only, whatever the characters of the prefix', async () => {
    const base = newPrefix();
    const prefixes = [`${base}[ab]*?`, `${base}a`, `${base}b-c`, `${base}[ab]*?:claim`, `${base}\\`];
    for (const prefix of prefixes) await begin(storeOf(redis, prefix), 'app', `of ${prefix}`);
    for (const prefix of prefixes) expect(keysOf(await scan(storeOf(redis, prefix)))).toEqual([`of ${prefix}`]);
  });

  it('leaves out what headgate did not write as a claim, and goes on', async () => {
    const prefix = newPrefix();
    const store = storeOf(redis, prefix);
    await begin(store, 'app', 'mine');
    await redis.set(`${prefix}:claim:{app:text}`, 'x');
    await redis.set(`${prefix}:claim:{app:free}`, 'free|x|1|=f');
    await redis.rpush(`${prefix}:claim:{app:list}`, 'x');
    await redis.hset(`${prefix}:claim:{app:hash}`, { state: 'completed', keptUntil: 'soon', leaseUntil: '0' });
    await redis.hset(`${prefix}:claim:{app:other}`, { state: 'lost', keptUntil: '99999999999999', leaseUntil: '0' });
    const claim = { state: 'completed', keptUntil: '99999999999999', leaseUntil: '0' };
    await redis.hset(`${prefix}:claim:{app:part}`, claim);
    await redis.hset(`${prefix}:claim:{app:wrong}`, { ...claim, generation: '1', dispatched: 'x', inherited: '0' });
    await redis.hset(`${prefix}:claim:{app:long}`, { ...claim, generation: '1', keptUntil: '1e300' });
    await redis.set(`${prefix}:claim:{app:many}`, 'free|99999999999999999999|99999999999999|=f');
    await redis.set(`${prefix}:claim:{nothing`, 'x');
    await createRedisStore(redis, { prefix: `${prefix}:claim` }).consume('acc', 'r}', windowSetFrom(['1/1m']), 1);
    expect(keysOf(await scan(store))).toEqual(['mine']);
  });

  it('never has a value, an owner or a fingerprint, and changes nothing', async () => {
    const prefix = newPrefix();
    const store = storeOf(redis, prefix);
    const value = `the-value ${'x'.repeat(20_000)}`;
    await store.complete({ scope: 'app', key: 'large' }, { ...sentBy('the-owner'), result: { status: '200', value } });
    // A dispatched claim is noted in another record, a moment later.
    await begin(store, 'app', 'running', false);
    const before = await recordsOf(prefix);
    const pages: string[] = [];
    const claims = await scan(store, 1_000, (page) => pages.push(JSON.stringify(page)));
    expect(claims.find(({ key }) => key === 'large')).toMatchObject({ status: '200', valueBytes: value.length });
    expect(pages.join()).not.toMatch(/the-value|the-owner|the-fingerprint|xxx/);
    expect(await recordsOf(prefix)).toEqual(before);
  });

  it('refuses a position that Redis would refuse, without a call', async () => {
    const errors: unknown[] = [];
    const prefix = newPrefix();
    const store = createRedisClaimStore(redis, {
      prefix,
      deadlineMs: 10_000,
      logger: false,
      onError: (e) => errors.push(e),
    });
    for (let i = 0; i < 200; i++) await begin(store, 'app', `k${i}`);
    const { next } = await store.list(undefined, 1);
    const at = (position: bigint) => (next as string).replace(/^(\w+\/\/)\d+/, (_, start) => `${start}${position}`);
    expect(await store.list(at(2n ** 64n - 1n), 1)).toMatchObject({ looked: expect.any(Number) });
    await expect(store.list(at(2n ** 64n), 1)).rejects.toMatchObject({ code: 'invalid_option' });
    expect(errors).toEqual([]);
  });

  it('begins again with a server that has restarted, because its positions are others', async () => {
    const store = storeOf(redis, newPrefix());
    const keys = Array.from({ length: 200 }, (_, i) => `k${1_000 + i}`);
    for (const key of keys) await begin(store, 'app', key);
    const first = await store.list(undefined, 10);
    // As if the cursor were of an earlier run of the server.
    let cursor = first.next?.replace(/^\w+/, 'an_earlier_run');
    const found: ListedClaim[] = [];
    while (cursor !== undefined) {
      const page = await store.list(cursor, 1_000);
      found.push(...page.claims);
      cursor = page.next;
    }
    expect(keysOf(found)).toEqual(keys);
  });

  it('without a connection fails, and does not open the circuit breaker of requests', async () => {
    const away = new Redis({ port: 1, lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
    away.on('error', () => {});
    await away.connect().catch(() => {});
    const errors: unknown[] = [];
    const store = createRedisClaimStore(away, { logger: false, onError: (error) => errors.push(error) });
    for (let i = 0; i < 6; i++)
      await expect(store.list(undefined, 1)).rejects.toMatchObject({ code: 'store_unavailable' });
    expect(errors).toHaveLength(6);
    expect(store.stats().breaker).toBe('closed');
  });
});

describe('the older clients', () => {
  it.each([...Object.keys(CLIENTS_5), ...Object.keys(CLUSTER_CLIENTS_5)])('list too: %s', async (name) => {
    const connecting = CLIENTS_5[name]?.(port) ?? CLUSTER_CLIENTS_5[name]?.(clusterPorts);
    const { client, disconnect } = await (connecting as Promise<ConnectedClient>);
    const store = storeOf(client, newPrefix());
    for (const key of ['a', 'b', 'c']) await begin(store, 'app', key);
    expect(keysOf(await scan(store))).toEqual(['a', 'b', 'c']);
    disconnect();
  });

  it('a prefix of ioredis itself is matched literally, and is no part of a key', async () => {
    const prefix = newPrefix();
    const prefixed = new Redis({ port, keyPrefix: 'tenant*:' });
    const other = new Redis({ port, keyPrefix: 'tenant1:' });
    await Promise.all([prefixed.ping(), other.ping()]);
    await begin(storeOf(prefixed, prefix), 'app', 'mine');
    await begin(storeOf(other, prefix), 'app', 'of another');
    expect(keysOf(await scan(storeOf(prefixed, prefix)))).toEqual(['mine']);
    prefixed.disconnect();
    other.disconnect();
  });
});

describe('on a cluster of three masters', () => {
  it('both clients find 5,000 claims page by page, while others write', async () => {
    const prefix = newPrefix();
    const store = storeOf(ioredisCluster, prefix);
    const keys = Array.from({ length: 5_000 }, (_, i) => `k${10_000 + i}`);
    for (let i = 0; i < keys.length; i += 250)
      await Promise.all(keys.slice(i, i + 250).map((key) => begin(store, 'app', key)));
    let isWriting = true;
    let written = 0;
    const writing = (async () => {
      while (isWriting) {
        const key = `other ${written++}`;
        await begin(store, 'app', key);
        if (written % 2 === 0) continue;
        const command = { ...sentBy('the-owner'), generation: 1, releasedRetentionMs: 0 };
        await store.abandon({ scope: 'app', key }, command);
      }
    })();
    const clients: RedisClient[] = [ioredisCluster, nodeRedisCluster as unknown as RedisClient];
    for (const client of clients) {
      const sizes: number[] = [];
      const servers = new Set<string>();
      const found = await scan(storeOf(client, prefix), 500, ({ claims, next }) => {
        sizes.push(claims.length);
        if (next !== undefined) servers.add(next.split('/')[1] as string);
      });
      expect(keysOf(found).filter((key) => key.startsWith('k'))).toEqual(keys);
      expect(Math.max(...sizes)).toBeLessThan(600);
      servers.delete('');
      expect(servers.size).toBe(3);
    }
    isWriting = false;
    await writing;
    expect(written).toBeGreaterThan(10);
  });
});
