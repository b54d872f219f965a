/** Shared limits on real Redis servers, which lose their data, freeze, and are a cluster. */

import { patient } from 'headgate-testbed/patience';
import { eventually, pause } from 'headgate-testbed/raw-http';
import { redisForFile } from 'headgate-testbed/redis-for-file';
import { Cluster, Redis } from 'ioredis';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { createLimiter } from '../../src/limits/limiter.ts';
import { createRedisAdjustments, createRedisStore, type RedisClient } from '../../src/redis.ts';
import {
  createSharedLimits,
  type SharedLimits,
  type SharedLimitsEvent,
  type SharedLimitsOptions,
} from '../../src/shared-limits/index.ts';

const redis = await redisForFile();
const BASE = { allMethods: ['60/1m'] };
const JANE = { by: 'jane' };

const clients: Redis[] = [];
const opened: SharedLimits[] = [];
const connect = (options: { readonly username?: string; readonly password?: string } = {}): Redis => {
  const client = new Redis({ ...options, port: redis.port, host: '127.0.0.1', enableOfflineQueue: false });
  client.on('error', () => {});
  clients.push(client);
  return client;
};
afterAll(async () => {
  await Promise.all(opened.map((limits) => limits.close()));
  for (const client of clients) client.disconnect();
});

/** A connection that is there. */
const connected = (): Redis => clients.find(({ status, options }) => status === 'ready' && !options.username) as Redis;

/** A process: a connection of its own, and limits that read the server every 500 ms as by default. */
async function start(prefix: string, options: Partial<SharedLimitsOptions> = {}, client: RedisClient = connect()) {
  if (client instanceof Redis) await eventually(() => client.status === 'ready', 'the connection');
  const adjustments = createRedisAdjustments(client, { prefix, logger: false });
  const limits = createSharedLimits({ base: BASE, adjustments, logger: false, ...options });
  opened.push(limits);
  await limits.ready();
  const maxOf = (account: string) => limits.windowSet({ account, route: 'GET /emails' }).windows[0]?.max;
  return { limits, maxOf };
}

describe('a process that only reads', () => {
  it('obeys as a user of Redis that may not write', async () => {
    const writer = await start('reader');
    const permissions = ['~reader:limits:*', '+@read', '+eval', '+evalsha', '+time', '+info', '+@connection'];
    await connected().call('ACL', 'SETUSER', 'reader', 'on', '>s3cret', ...permissions);
    const client = connect({ username: 'reader', password: 's3cret' });
    const failures: unknown[] = [];
    const onEvent = (event: SharedLimitsEvent) => event.type === 'failed' && failures.push(event.error);
    const reader = await start('reader', { readOnly: true, onEvent }, client);
    const { revision } = await writer.limits.put({ account: 'a' }, ['61/1m'], { ...JANE, forMs: 1_500 });
    await eventually(() => reader.maxOf('a') === 61, 'the reader');
    expect(await reader.limits.applied(revision)).toEqual({ instances: 1, of: 1, missing: [] });
    // The end, which each process sees by itself; and data that is gone, which only the writer gives back.
    await eventually(() => reader.maxOf('a') === 60, 'the end');
    await connected().del('reader:limits:{adjusted}:now', 'reader:limits:{adjusted}:log');
    await eventually(async () => (await connected().exists('reader:limits:{adjusted}:now')) === 1, 'the data');
    await eventually(() => reader.limits.state.source === 'store', 'the reader');
    expect(failures).toEqual([]);
    await expect(client.hset('reader:limits:{adjusted}:now', 'a', 'b')).rejects.toThrow(/NOPERM/);
  });
});

describe('two processes', () => {
  it('a hundred changes of one are obeyed by the other a second later, each of them', async () => {
    const [one, other] = await Promise.all([start('spread'), start('spread')]);
    const rounds = Array.from({ length: 100 }, async (_, i) => {
      await pause(i * 25);
      await one.limits.put({ account: `acc_${i}` }, [`${61 + i}/1m`], JANE);
      await pause(1_000);
      return other.maxOf(`acc_${i}`) === 61 + i;
    });
    expect((await Promise.all(rounds)).filter((obeyed) => !obeyed)).toEqual([]);
  });

  it('on a cluster with three masters', async () => {
    const nodes = inject('redis').clusterPorts.map((port) => ({ host: '127.0.0.1', port }));
    const cluster = new Cluster(nodes, {});
    try {
      const prefix = `shared-limits-${process.pid}`;
      const [one, other] = await Promise.all([start(prefix, {}, cluster), start(prefix, {}, cluster)]);
      const { revision } = await one.limits.put({ account: 'a' }, ['61/1m'], JANE);
      expect(await one.limits.applied(revision)).toEqual({ instances: 2, of: 2, missing: [] });
      expect(other.maxOf('a')).toBe(61);
      await Promise.all(opened.splice(-2).map((limits) => limits.close()));
    } finally {
      cluster.disconnect();
    }
  });

  it('200 random changes of four: all end with the same list, and the history makes the same', async () => {
    const processes = await Promise.all(Array.from({ length: 4 }, () => start('race')));
    await Promise.all(
      processes.map(async ({ limits }, i) => {
        for (let n = 0; n < 50; n++) {
          const target = { account: `acc_${(i * 7 + n * 3) % 11}` };
          await (n % 5 === 4 ? limits.reset(target, JANE) : limits.put(target, [`${61 + n}/1m`], JANE));
        }
      }),
    );
    const [first] = processes as [Awaited<ReturnType<typeof start>>];
    // Each knows its own changes, so all know all of them as soon as they agree.
    const textOf = ({ limits }: (typeof processes)[number]) =>
      JSON.stringify(
        limits
          .list()
          .map(({ target, windows }) => [target.account, windows])
          .sort(),
      );
    await eventually(() => new Set(processes.map(textOf)).size === 1, 'all to read');
    const lists = processes.map(({ limits }) => new Map(limits.list().map((each) => [each.target.account, each])));
    for (const list of lists) expect(list).toEqual(lists[0]);
    const made = new Map<string | undefined, unknown>();
    for (const entry of (await first.limits.history({ limit: 1_000 })).toReversed())
      for (const { target, to } of entry.limits) to ? made.set(target.account, to) : made.delete(target.account);
    expect(made).toEqual(new Map([...(lists[0] ?? [])].map(([account, { windows }]) => [account, windows])));
  });
});

describe('Redis that loses everything', () => {
  it.each([
    ['FLUSHALL', () => (clients[0] as Redis).flushall()],
    ['a restart without its data', () => redis.kill().then(() => redis.restart())],
  ])('%s: nobody falls back to the base, and a new process obeys within two seconds', async (name, lose) => {
    const prefix = `lost-${name.length}`;
    const one = await start(prefix);
    await one.limits.put({ account: 'a' }, ['61/1m'], JANE);
    await lose();
    const began = performance.now();
    const seen = new Set<number | undefined>();
    while (performance.now() - began < 1_500) {
      seen.add(one.maxOf('a'));
      await pause(20);
    }
    expect(seen).toEqual(new Set([61]));
    const late = await start(prefix);
    await eventually(() => late.maxOf('a') === 61, 'the new process');
    expect(performance.now() - began).toBeLessThan(patient(5_000));
  });
});

describe('Redis frozen', () => {
  it('decisions go on by the adjusted limits, a change fails in time, and nothing is half done', async () => {
    const one = await start('frozen');
    await one.limits.put({ account: 'a' }, ['61/1m'], JANE);
    redis.freeze();
    try {
      await eventually(() => one.limits.state.source === 'kept', 'the first reading that fails');
      const began = performance.now();
      await expect(one.limits.put({ account: 'a' }, ['62/1m'], JANE)).rejects.toThrow(/did not answer|unavailable/);
      // A reading that is on its way has its deadline too.
      expect(performance.now() - began).toBeLessThan(patient(1_000));
      expect(one.maxOf('a')).toBe(61);
    } finally {
      redis.thaw();
    }
    await eventually(() => one.limits.state.source === 'store', 'a reading');
    await eventually(async () => {
      const [last] = await one.limits.history({ limit: 1 });
      return one.maxOf('a') === last?.limits[0]?.to?.[0]?.max;
    }, 'the last change');
    expect(await start('frozen').then(({ maxOf }) => maxOf('a'))).toBe(one.maxOf('a'));
  });
});

describe('commands', () => {
  const callsOf = async (client: Redis): Promise<Record<string, number>> => {
    const info = await client.info('commandstats');
    return Object.fromEntries(
      [...info.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(([, name, n]) => [name, Number(n)]),
    );
  };

  it('1,000 decisions are exactly 1,000 calls of a script, and two polls a second beside them', async () => {
    for (const others of opened.splice(0)) await others.close();
    const client = connect();
    const { limits } = await start('calls', { base: { allMethods: ['5000/1m'] }, refreshMs: 60_000 });
    const limiter = createLimiter({ store: createRedisStore(client, { deadlineMs: 10_000 }), limits });
    await limiter.consume({ account: 'a', route: 'r' });
    await pause(200);
    const before = await callsOf(client);
    for (let i = 0; i < 1_000; i++) await limiter.consume({ account: 'a', route: 'r' });
    const after = await callsOf(client);
    expect((after.evalsha ?? 0) - (before.evalsha ?? 0)).toBe(1_000);
    expect((after.eval ?? 0) - (before.eval ?? 0)).toBe(0);
  });

  it('a process that has nothing to do sends at most three a second', async () => {
    for (const limits of opened.splice(0)) await limits.close();
    const client = connect();
    await start('idle');
    const before = await callsOf(client);
    await pause(3_000);
    const after = await callsOf(client);
    expect((after.evalsha ?? 0) - (before.evalsha ?? 0)).toBeLessThanOrEqual(9);
    expect((after.evalsha ?? 0) - (before.evalsha ?? 0)).toBeGreaterThanOrEqual(3);
  });
});
