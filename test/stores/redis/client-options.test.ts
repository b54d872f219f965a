/** Clients with options that users may have set for the rest of their program. The store decides the same. */
import { Redis } from 'ioredis';
import { createClient, RESP_TYPES } from 'redis';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { type ConnectedClient, ofIoredis, ofNodeRedis } from '../../support/redis-clients.ts';

const { port } = inject('redis');
const url = `redis://127.0.0.1:${port}`;
const windowSet = createWindowSet(parseLimit(['3/1m']), parseLimit(['5/1h']));
let prefixes = 0;

const CONFIGURED: Record<string, () => Promise<ConnectedClient>> = {
  'ioredis with enableAutoPipelining': () => ofIoredis(new Redis({ port, enableAutoPipelining: true })),
  'ioredis with stringNumbers': () => ofIoredis(new Redis({ port, stringNumbers: true })),
  'ioredis with keyPrefix': () => ofIoredis(new Redis({ port, keyPrefix: `app-${process.pid}:` })),
  'ioredis with lazyConnect': async () => {
    const client = new Redis({ port, lazyConnect: true });
    return { client, disconnect: () => client.disconnect() };
  },
  'ioredis in another database': () => ofIoredis(new Redis({ port, db: 5 })),
  'node-redis with RESP 2': () => ofNodeRedis(createClient({ url, RESP: 2 })),
  'node-redis with RESP 3': () => ofNodeRedis(createClient({ url, RESP: 3 })),
  'node-redis with replies as bytes': () => {
    const client = createClient({ url, commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } } });
    return ofNodeRedis(client as unknown as Parameters<typeof ofNodeRedis>[0]);
  },
  'node-redis in another database': () => ofNodeRedis(createClient({ url, database: 5 })),
};

describe.each(Object.entries(CONFIGURED))('%s', (_name, connect) => {
  it('S5, S13, S14: decides, refunds, peeks and resets', async () => {
    const { client, disconnect } = await connect();
    onTestFinished(disconnect);
    const prefix = `options-${process.pid}-${prefixes++}`;
    const store = createRedisStore(client, { prefix, deadlineMs: 10_000, denyCacheMaxMs: 0 });
    const consume = async () => store.consume('acc', 'route', windowSet, 1);
    const remaining = async () => (await store.peek('acc', 'route', windowSet)).map((window) => window.remaining);
    const decisions = [await consume(), ...(await Promise.all([consume(), consume(), consume()]))];
    expect(decisions.map(({ accepted }) => accepted)).toEqual([true, true, true, false]);
    expect(await remaining()).toEqual([0, 2]);
    expect(await store.settle(decisions[0] as (typeof decisions)[number], 0)).toBe(true);
    expect(await remaining()).toEqual([1, 3]);
    for (const target of [{ account: 'acc', route: 'route' }, { account: 'acc' }, { route: 'route' }, {}]) {
      await store.reset(target);
      expect(await remaining(), JSON.stringify(target)).toEqual([3, 5]);
      await consume();
    }
    expect(store.stats().degraded).toBe(0);
  });
});
