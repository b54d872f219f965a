/** The name of the master moves to another server, and the old one has become a replica. */

import { isHeadgateError, parseLimit } from 'headgate';
import { createRedisClaimStore, createRedisStore } from 'headgate/redis';
import { createWindowSet } from 'headgate/stores';
import { tell } from 'headgate-testbed/redis-cluster';
import { Caller } from 'headgate-testbed/redis-load';
import { startReplica } from 'headgate-testbed/redis-sentinel';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { startTcpProxy, type TcpProxy } from 'headgate-testbed/tcp-proxy';
import type { Redis } from 'ioredis';
import { expect, it, onTestFinished } from 'vitest';
import { connected, createRedisClient } from '../../src/store/redis-client.ts';

const windowSet = createWindowSet([], parseLimit(['1000/1h']));
const common = { token: 'a', fingerprint: 'f', retentionMs: 60_000 };
const begin = { ...common, leaseMs: 30_000, onOrphan: 'reject', dispatch: false } as const;

interface Pair {
  readonly old: RedisServer;
  readonly next: RedisServer;
  /** The name of the master. */
  readonly name: TcpProxy;
}

async function startPair(): Promise<Pair> {
  const old = await startRedis('--repl-diskless-sync-delay', '0');
  const next = await startReplica(old.port);
  const name = await startTcpProxy(old.port);
  onTestFinished(async () => {
    await name.close();
    await Promise.all([old.stop(), next.stop()]);
  });
  return { old, next, name };
}

async function swap({ old, next, name }: Pair): Promise<void> {
  await tell(next.port, 'REPLICAOF', 'NO', 'ONE');
  await tell(old.port, 'REPLICAOF', '127.0.0.1', String(next.port));
  name.target = next.port;
}

async function connect({ name }: Pair): Promise<Redis> {
  const url = {
    kind: 'redis',
    node: { host: '127.0.0.1', port: name.port },
    db: 0,
    tls: false,
    username: undefined,
    password: undefined,
  } as const;
  const client = createRedisClient(url, () => {}) as Redis;
  onTestFinished(() => client.disconnect());
  expect(await connected(client, 5_000)).toBe(true);
  return client;
}

/** How often a server was told to run a script, whether it could or not. */
async function scriptsOf({ port }: RedisServer): Promise<number> {
  const stats = String(await tell(port, 'INFO', 'commandstats'));
  return [...stats.matchAll(/cmdstat_evalsha:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

it('S17: a master that was demoted is left: the same stores decide on the new one', async () => {
  const pair = await startPair();
  const client = await connect(pair);
  const limits = createRedisStore(client, { deadlineMs: 1_000, denyCacheMaxMs: 0 });
  const claims = createRedisClaimStore(client, { deadlineMs: 1_000 });
  const caller = new Caller(limits, windowSet);
  await until(async () => (await caller.check()) === 'accepted', 'the old master decides');
  await swap(pair);
  await until(async () => (await caller.check()) === 'accepted', 'the new master decides');
  await until(async () => {
    const reply = await claims.begin({ scope: 'app', key: 'k' }, begin).catch(() => undefined);
    return reply?.kind === 'claimed';
  }, 'the new master claims');
  expect(await tell(pair.next.port, 'EXISTS', 'headgate:claim:{app:k}')).toBe(1);
});

it('a command that a demoted master refuses, and every command beside it, is sent once', async () => {
  const pair = await startPair();
  const client = await connect(pair);
  const claims = createRedisClaimStore(client, { deadlineMs: 1_000 });
  await until(
    () =>
      claims.inspect({ scope: '', key: '' }).then(
        () => true,
        () => false,
      ),
    'the script is loaded',
  );
  await tell(pair.next.port, 'SCRIPT', 'FLUSH');
  await swap(pair);
  const before = (await scriptsOf(pair.old)) + (await scriptsOf(pair.next));
  // Each command is a call of its own, because it is sent in a turn of its own.
  const replies: Promise<unknown>[] = [];
  for (let i = 0; i < 20; i++) {
    replies.push(claims.begin({ scope: 'app', key: `k${i}` }, begin).catch((error: unknown) => error));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const results = await Promise.all(replies);
  expect(results.every((result) => isHeadgateError(result, 'store_unavailable'))).toBe(true);
  expect((results[0] as Error).message).toContain('READONLY');
  const isConnected = () =>
    client.ping().then(
      () => true,
      () => false,
    );
  await until(isConnected, 'the client is connected again');
  const sent = results.filter((result) => (result as { sent?: boolean }).sent);
  expect((await scriptsOf(pair.old)) + (await scriptsOf(pair.next)) - before).toBeLessThanOrEqual(sent.length);
});
