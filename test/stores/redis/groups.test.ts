/** S31 on real servers: groups of requests of two processes, on one server and on a cluster, whose subjects share no slot. */
import { type Cluster, Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { createLimiter } from '../../../src/index.ts';
import { createLeases, groupAccount } from '../../../src/limits/index.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { raceForGroup } from '../../support/group-race.ts';
import { clusterForFile, redisForFile } from '../../support/ioredis-for-file.ts';

const clients = { server: redisForFile(), cluster: clusterForFile() };

let prefixes = 0;
const storeOf = (client: Redis | Cluster, prefix: string, options = {}) =>
  createRedisStore(client, { prefix, deadlineMs: 10_000, logger: false, ...options });
const newPrefix = (): string => `groups-${process.pid}-${prefixes++}`;
const LIMITS = { default: ['3/1h'], groups: { customer: ['2/1h'] } };
const CUSTOMER = groupAccount('customer', 'cus_7');

describe.each(Object.entries(clients))('on a %s', (_, client) => {
  it('S31: the sum over 50 accounts of one customer never exceeds its window, and rejections leave no trace', async () => {
    const prefix = newPrefix();
    await raceForGroup([storeOf(client, prefix, { denyCacheMaxMs: 0 }), storeOf(client, prefix)]);
  });

  it('S20, S31: an accept is two calls of one trip, a cached rejection none, and an undo frees what was cached', async () => {
    const store = storeOf(client, newPrefix());
    const limiter = createLimiter({ store, limits: LIMITS, logger: false });
    const request = { account: 'a', groups: { customer: 'cus_7' } };
    for (const calls of [2, 4]) {
      expect((await limiter.consume(request)).accepted).toBe(true);
      expect(store.stats().calls).toBe(calls);
    }
    expect(await limiter.consume(request)).toMatchObject({ rejectedBy: 'customer', shown: { remaining: 0 } });
    expect(await limiter.consume({ ...request, account: 'b' })).toMatchObject({ rejectedBy: 'customer', account: 'b' });
    expect(store.stats()).toMatchObject({ calls: 6, localRejections: 1 });
    expect(await limiter.peek({ account: 'a' })).toMatchObject([{ remaining: 1 }]);
    expect(await limiter.peek({ account: 'b' })).toMatchObject([{ remaining: 3, startedAt: undefined }]);
    await limiter.reset({ account: CUSTOMER });
    expect((await limiter.consume(request)).accepted).toBe(true);
  });
});

it('S31, S32: leases give back what a rejection undid, and no window admits more than its max', async () => {
  const store = storeOf(clients.server, newPrefix());
  const limits = { default: ['500/1h'], groups: { customer: ['300/1h'] } };
  const limiter = createLimiter({ store, limits, leases: createLeases(), logger: false });
  const groups = { customer: 'cus_7' };
  let accepted = 0;
  for (let i = 0; i < 40; i++) {
    const decisions = await Promise.all(Array.from({ length: 10 }, () => limiter.consume({ account: 'a', groups })));
    accepted += decisions.filter((decision) => decision.accepted).length;
  }
  expect(accepted).toBe(300);
  await limiter.close();
  const after = createLimiter({
    store: storeOf(clients.server, `groups-${process.pid}-${prefixes - 1}`),
    limits,
    logger: false,
  });
  expect(await after.peek({ account: 'a' })).toMatchObject([{ remaining: 200 }]);
  expect(await after.peek({ account: CUSTOMER })).toMatchObject([{ remaining: 0 }]);
});

it('S17, S31: while Redis is away, the counters of this process decide, undo and say `degraded`', async () => {
  const away = new Redis({ port: 1, lazyConnect: true, enableOfflineQueue: false, retryStrategy: () => null });
  away.on('error', () => {});
  const limiter = createLimiter({ store: storeOf(away, newPrefix()), limits: LIMITS, logger: false });
  const request = { account: 'a', groups: { customer: 'cus_7' } };
  for (let i = 0; i < 2; i++) expect(await limiter.consume(request)).toMatchObject({ accepted: true, degraded: true });
  expect(await limiter.consume(request)).toMatchObject({ accepted: false, degraded: true, rejectedBy: 'customer' });
  expect(await limiter.consume({ account: 'a' })).toMatchObject({ accepted: true, shown: { remaining: 0 } });
  const refuse = storeOf(away, newPrefix(), { onStoreFailure: 'refuse' });
  const strict = createLimiter({ store: refuse, limits: LIMITS, logger: false });
  await expect(strict.consume(request)).rejects.toMatchObject({ code: 'store_unavailable' });
});
