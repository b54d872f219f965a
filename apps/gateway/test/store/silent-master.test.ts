/** The master vanishes without closing its connections, as a host does that loses power, and its name moves. */

import { parseLimit } from 'headgate';
import { createRedisClaimStore, createRedisStore } from 'headgate/redis';
import { createWindowSet } from 'headgate/stores';
import { Caller } from 'headgate-testbed/redis-load';
import { startRedis, until } from 'headgate-testbed/redis-server';
import { startTcpProxy, type TcpProxy } from 'headgate-testbed/tcp-proxy';
import type { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { connected, createRedisClient } from '../../src/store/redis-client.ts';

const windowSet = createWindowSet([], parseLimit(['1000/1h']));
const common = { token: 'a', fingerprint: 'f', retentionMs: 60_000 };
const begin = { ...common, leaseMs: 30_000, onOrphan: 'reject', dispatch: false } as const;

async function connect({ port }: TcpProxy): Promise<Redis> {
  const node = { host: '127.0.0.1', port };
  const url = { kind: 'redis', node, db: 0, tls: false, username: undefined, password: undefined } as const;
  const client = createRedisClient(url, () => {}, { silenceMs: 1_000 }) as Redis;
  onTestFinished(() => client.disconnect());
  expect(await connected(client, 5_000)).toBe(true);
  return client;
}

it('S17: a silent connection is left: the same stores decide on the new master', async () => {
  const [old, next] = await Promise.all([startRedis(), startRedis()]);
  const name = await startTcpProxy(old.port);
  onTestFinished(async () => {
    await name.close();
    await Promise.all([old.stop(), next.stop()]);
  });
  const [client, largeClient] = await Promise.all([connect(name), connect(name)]);
  const limits = createRedisStore(client, { denyCacheMaxMs: 0 });
  const claims = createRedisClaimStore(client, { largeValues: { client: largeClient } });
  const caller = new Caller(limits, windowSet);
  await until(async () => (await caller.check()) === 'accepted', 'the old master decides');
  old.freeze();
  name.target = next.port;
  const complete = async (value: string): Promise<unknown> => {
    const id = { scope: 'app', key: String(value.length) };
    await claims.begin(id, begin).catch(() => undefined);
    return claims.complete(id, { ...common, result: { status: '200', value } }).catch(() => undefined);
  };
  await until(async () => (await caller.check()) === 'accepted', 'the new master decides');
  await until(async () => {
    const reply = await complete('x'.repeat(20_000));
    return JSON.stringify(reply) === '{"kind":"ok"}';
  }, 'the new master stores a large result');
});
