/**
 * If the server does not have a script, its source is sent once. After any other error nothing is sent again, because
 * the script may have been executed.
 */

import { tell } from 'headgate-testbed/redis-cluster';
import { type RedisServer, startRedis } from 'headgate-testbed/redis-server';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore, type RedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS, CLIENTS_5 } from '../../support/redis-clients.ts';

const windowSet = createWindowSet([], parseLimit(['10/1h']));
// A separate server, because its commands are counted.
let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

/** How often the server has executed each command since the last reset of its statistics. */
async function calls(): Promise<{ evalsha: number; eval: number; script: number }> {
  const stats = String(await tell(server.port, 'INFO', 'commandstats'));
  const of = (command: string): number =>
    Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  return { evalsha: of('evalsha'), eval: of('eval'), script: of('script\\|load') };
}

describe.each(Object.entries({ ...CLIENTS, ...CLIENTS_5 }))('%s', (_name, connect) => {
  async function storeOn(prefix: string): Promise<RedisStore> {
    const { client, disconnect } = await connect(server.port);
    onTestFinished(disconnect);
    await tell(server.port, 'FLUSHALL');
    await tell(server.port, 'SCRIPT', 'FLUSH');
    await tell(server.port, 'CONFIG', 'RESETSTAT');
    return createRedisStore(client, { prefix, deadlineMs: 10_000, denyCacheMaxMs: 0 });
  }

  it('NOSCRIPT: the source is sent until the server has it; nothing is loaded beforehand', async () => {
    const store = await storeOn('noscript');
    const decisions = [];
    for (let i = 0; i < 3; i++) decisions.push(await store.consume('acc', 'route', windowSet, 1));
    expect(decisions.map(({ shown }) => shown?.remaining)).toEqual([9, 8, 7]);
    expect(await calls()).toEqual({ evalsha: 3, eval: 1, script: 0 });
    expect(await store.settle(decisions[0] as (typeof decisions)[number], 0)).toBe(true);
    expect(await calls()).toEqual({ evalsha: 4, eval: 2, script: 0 });
    expect((await store.peek('acc', 'route', windowSet))[0]?.remaining).toBe(8);
  });

  it('a script that has failed is not sent again', async () => {
    const store = await storeOn('failed');
    await store.consume('acc', 'route', windowSet, 1);
    await tell(server.port, 'CONFIG', 'SET', 'maxmemory', '1');
    try {
      expect((await store.consume('acc', 'route', windowSet, 1)).degraded).toBe(true);
    } finally {
      await tell(server.port, 'CONFIG', 'SET', 'maxmemory', '0');
    }
    expect(await calls()).toEqual({ evalsha: 2, eval: 1, script: 0 });
    expect((await store.peek('acc', 'route', windowSet))[0]?.remaining).toBe(9);
  });
});
