/** The config's `store`, and what happens while Redis is down: S17, S18 and /healthz. */

import { isHeadgateError } from 'headgate';
import { eventually } from 'headgate-testbed/raw-http';
import { type RedisServer, startRedis } from 'headgate-testbed/redis-server';
import { startUpstream, type Upstream } from 'headgate-testbed/upstream';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { checkConfig } from '../../src/config/config.ts';
import { parseStoreUrl, type RedisUrl } from '../../src/config/store-url.ts';
import { connected, createRedisClient } from '../../src/store/redis-client.ts';
import { openStore } from '../../src/store/store.ts';
import { configOf, expectProblem, freePort, NO_RATES, ratesOf } from '../support/gateway.ts';
import { type InProcess, openLog, startInProcess } from '../support/in-process.ts';
import { windowSetFrom } from '../support/window-set.ts';

const DEADLINE_MS = 150;
const CHATS = '/api/v1/chats?account_id=';
let redis: RedisServer;
let upstream: Upstream;

beforeAll(async () => {
  redis = await startRedis('--user', 'gate', 'on', '>s3cret', '~*', '&*', '+@all');
  upstream = await startUpstream();
});
afterAll(() => redis.stop());

const start = (rest: Record<string, unknown>): Promise<InProcess> =>
  startInProcess(
    configOf(upstream.url, {
      store: `redis://gate:s3cret@127.0.0.1:${redis.port}/1`,
      storeDeadlineMs: DEADLINE_MS,
      limits: { default: { allMethods: ['3/1h'] } },
      ...rest,
    }),
  );
const healthOf = async (gateway: InProcess) => JSON.parse((await gateway.ask('GET', '/healthz')).text).status;
const statusesOf = async (gateways: readonly InProcess[], account: string, times: number) => {
  const statuses: number[] = [];
  for (let i = 0; i < times; i += 1) {
    statuses.push((await (gateways[i % gateways.length] as InProcess).ask('GET', CHATS + account)).status);
  }
  return statuses;
};

describe('a store in memory', () => {
  it('I13: with many applications, those that fill it together leave room for the claims of every other', async () => {
    const applications = Array.from({ length: 50 }, (_, i) => `app_${i}`);
    const keys = applications.map((application) => ({ token: `token-${application}`, application }));
    const { claims } = await openStore(
      checkConfig(configOf(upstream.url, { keys, accounts: [] }), 'test'),
      openLog().log,
    );
    const settings = {
      fingerprint: 'f',
      retentionMs: 60_000,
      leaseMs: 1_000,
      onOrphan: 'reject',
      dispatch: true,
    } as const;
    const claim = (scope: string, key: number) =>
      claims.begin({ scope, key: `key-${key}` }, { ...settings, token: 'a' });
    const claimed = (scope: string, most: number): number => {
      for (let count = 0; count < most; count++) {
        try {
          claim(scope, count);
        } catch (error) {
          expect(isHeadgateError(error, 'scope_full') || isHeadgateError(error, 'store_full')).toBe(true);
          return count;
        }
      }
      return most;
    };
    const [polite = '', ...noisy] = applications;
    for (const scope of noisy) claimed(scope, 20_000);
    expect(claimed(polite, 900)).toBe(900);
  });
});

describe('a store in Redis', () => {
  it.each([
    ['one server, with a user and a database', undefined],
    ['a cluster', 'cluster'],
  ])('%s: two gateways share one allowance', async (_title, kind) => {
    const hosts = inject('redis').clusterPorts.map((port) => `127.0.0.1:${port}`);
    // The count is exact only if no decision is degraded, and a busy machine must not cause one.
    const patient = { storeDeadlineMs: 10_000 };
    const rest = kind === undefined ? patient : { store: `redis-cluster://${hosts.join()}`, ...patient };
    const gateways = [await start(rest), await start(rest)];
    expect(await statusesOf(gateways, 'acc_1', 6)).toEqual([200, 200, 200, 429, 429, 429]);
    expect(await healthOf(gateways[0] as InProcess)).toBe('ok');
    await Promise.all(gateways.map((gateway) => gateway.stop()));
  });

  it('has metrics in /metrics', async () => {
    const gateway = await start({ storeDeadlineMs: 10_000 });
    await gateway.ask('GET', `${CHATS}acc_2`);
    const text = await gateway.metrics();
    expect(text).toMatch(/^headgate_redis_store_calls_total 2$/m);
    for (const name of ['coalesced_checks', 'local_rejections', 'deadline_misses', 'late_answers']) {
      expect(text).toMatch(new RegExp(`^headgate_redis_store_${name}_total 0$`, 'm'));
    }
    expect(text).toMatch(/^headgate_redis_store_breaker 0$/m);
    expect(text).not.toContain('headgate_memory_store');
    await gateway.stop();
  });

  it('that is down at start causes a warning: the gateway serves degraded, and recovers', async () => {
    await redis.kill();
    const gateway = await start({});
    const isThere = ({ msg }: Record<string, unknown>) => String(msg).startsWith('redis is unreachable');
    await eventually(() => gateway.lines().some(isThere), 'the warning');
    expect(gateway.lines().find(isThere)).toMatchObject({ level: 40, onStoreFailure: 'local' });
    expect(JSON.stringify(gateway.lines())).not.toContain('s3cret');
    expect(await healthOf(gateway)).toBe('degraded');
    const reply = await gateway.ask('GET', `${CHATS}acc_3`);
    expect([reply.status, ratesOf(reply)]).toEqual([200, NO_RATES]);
    await redis.restart();
    await eventually(async () => ratesOf(await gateway.ask('GET', `${CHATS}acc_4`)).limit === 3, 'a whole decision');
    await eventually(async () => (await healthOf(gateway)) === 'ok', 'health');
    await gateway.stop();
  });

  it('S17: frozen, with `refuse`: 503 in time, a failure in log and metrics, and /healthz is degraded', async () => {
    const gateway = await start({ onStoreFailure: 'refuse' });
    await eventually(async () => (await statusesOf([gateway], 'acc_5', 1))[0] === 200, 'Redis decides');
    redis.freeze();
    try {
      for (let i = 0; i < 4; i += 1) {
        const began = performance.now();
        const reply = await gateway.ask('GET', `${CHATS}acc_5`);
        expect(performance.now() - began).toBeLessThan(DEADLINE_MS + 500);
        const { req_id } = expectProblem(reply, 503, 'errors/service_unavailable');
        expect(ratesOf(reply)).toEqual(NO_RATES);
        const ofThis = (line: Record<string, unknown>) => line.msg === 'gate failure' && line.req_id === req_id;
        await eventually(() => gateway.lines().some(ofThis), 'the failure in the log');
      }
      expect(await healthOf(gateway)).toBe('degraded');
      expect(await gateway.metrics()).toMatch(/^headgate_failures_total\{stage="limits"\} 4$/m);
      // At most one line per second, however many calls fail.
      expect(gateway.lines().filter(({ msg }) => msg === 'redis error').length).toBeLessThanOrEqual(2);
    } finally {
      redis.thaw();
    }
    await gateway.stop();
  });

  it('S17: frozen, with `local`: this process applies the limit, and its 429 has no rate-limit headers', async () => {
    const gateway = await start({});
    redis.freeze();
    try {
      expect(await statusesOf([gateway], 'acc_6', 5)).toEqual([200, 200, 200, 429, 429]);
      expect(ratesOf(await gateway.ask('GET', `${CHATS}acc_6`))).toEqual(NO_RATES);
      expect(await gateway.metrics()).toMatch(
        /^headgate_decisions_total\{route="GET \/api\/v1\/chats",limit="[^"]+",outcome="degraded"\} 6$/m,
      );
    } finally {
      redis.thaw();
    }
    await gateway.stop();
  });
});

describe('openStore', () => {
  it('rediss: a server without TLS counts as down', async () => {
    const { log, lines } = openLog();
    const config = checkConfig({ store: `rediss://127.0.0.1:${redis.port}`, storeDeadlineMs: 50 }, 'test');
    const store = await openStore(config, log);
    expect(await store.health()).toBe('degraded');
    // Before the store is closed: the connection fails by its own timeout, and a closed client reports no more errors.
    await eventually(() => lines().some(({ msg }) => msg === 'redis error'), 'the warning');
    store.close();
  });

  it('S17: begins with the scripts loaded, and logs the beginning and the end of an outage once each', async () => {
    const server = await startRedis();
    const admin = createRedisClient(parseStoreUrl(`redis://127.0.0.1:${server.port}`) as RedisUrl, () => {});
    await connected(admin, 5_000);
    const { log, lines } = openLog();
    const store = await openStore(checkConfig({ store: `redis://127.0.0.1:${server.port}` }, 'test'), log);
    const decide = () => store.limits.consume('acc', 'GET /', windowSetFrom(['1000000/1h']), 1);
    const logged = () => lines().flatMap(({ level, msg }) => (/^headgate: /.test(String(msg)) ? [[level, msg]] : []));
    try {
      // Those of the two stores, and the one of the checks that run meanwhile.
      const scripts = async () => /number_of_cached_scripts:(\d+)/.exec(await (admin as Redis).info('memory'))?.[1];
      await eventually(async () => (await scripts()) === '3', 'the scripts are loaded');
      expect((await decide()).degraded).toBe(false);
      await server.kill();
      for (let i = 0; i < 10; i++) await decide();
      await server.restart();
      await eventually(async () => !(await decide()).degraded && logged().length > 1, 'the end is logged');
      for (let i = 0; i < 10; i++) await decide();
      const what = 'headgate: the store for rate limits';
      expect(logged()).toEqual([
        [40, `${what} fails, so this process decides with counters of its own`],
        [30, `${what} answers again`],
      ]);
    } finally {
      admin.disconnect();
      store.close();
      await server.stop();
    }
  });

  it.each(['redis', 'redis-cluster'])(
    '%s: opening does not wait for a server that refuses connections',
    async (kind) => {
      const client = createRedisClient(parseStoreUrl(`${kind}://127.0.0.1:${await freePort()}`) as RedisUrl, () => {});
      // The bound is longer than the test's own timeout.
      expect(await connected(client, 600_000)).toBe(false);
      client.disconnect();
    },
  );

  it('a cluster that is down, with credentials: degraded, and neither user nor password is logged', async () => {
    const { log, lines } = openLog();
    const port = await freePort();
    const store = await openStore(checkConfig({ store: `redis-cluster://us3r:s3cret@127.0.0.1:${port}` }, 'test'), log);
    expect(await store.health()).toBe('degraded');
    store.close();
    await eventually(() => lines().some(({ msg }) => msg === 'redis error'), 'the warning');
    expect(JSON.stringify(lines())).not.toMatch(/us3r|s3cret/);
  });

  it('S18: memory has room for the accounts and routes of every later config, and is never degraded', async () => {
    const { log } = openLog();
    const store = await openStore(checkConfig(configOf('http://127.0.0.1:1'), 'test'), log);
    const read = store.metrics.map(async ({ name, value }) => [name, await value()] as const);
    const figures = Object.fromEntries(await Promise.all(read));
    expect(figures).toEqual({
      store_up: 1,
      memory_store_keys: 0,
      memory_store_max_keys: 16_000_000,
      memory_store_refused_total: 0,
      memory_store_swept_total: 0,
      memory_addresses_keys: 0,
      memory_addresses_max_keys: 1_000_000,
      memory_addresses_refused_total: 0,
      memory_addresses_swept_total: 0,
      memory_claims_keys: 0,
      memory_claims_max_keys: 100_000,
      memory_claims_bytes: 0,
      memory_claims_max_bytes: 67_108_864,
      memory_claims_refused_total: 0,
      memory_claims_refused_in_scope_total: 0,
      memory_claims_forgotten_total: 0,
      memory_claims_dropped_total: 0,
      memory_claims_swept_total: 0,
    });
    expect(await store.health()).toBe('ok');
    store.close();
  });

  it.each([
    ['one application: all keys in memory', 1, undefined, 100_000],
    ['four applications: a quarter each', 4, undefined, 25_000],
    ['fifty applications: 10,000 each', 50, undefined, 10_000],
    ['a share of the config', 4, 7, 7],
  ])('I13: %s', async (_, applications, maxClaims, share) => {
    const keys = Array.from({ length: applications }, (_, i) => ({ token: `t${i}`, application: `app_${i}` }));
    const { claims } = await openStore(checkConfig({ keys, perApplication: { maxClaims } }, 'test'), openLog().log);
    const command = { fingerprint: 'f', token: 't', leaseMs: 1, retentionMs: 60_000, onOrphan: 'reject' } as const;
    const begin = (key: number) => claims.begin({ scope: 'app_0', key: `${key}` }, { ...command, dispatch: false });
    for (let key = 0; key < share; key++) await begin(key);
    await expect((async () => begin(share))()).rejects.toMatchObject({
      code: share === 100_000 ? 'store_full' : 'scope_full',
    });
  });

  it('I13: after a reload with more applications each has a smaller share, and its claims stay', async () => {
    const configWith = (applications: number, perApplication = {}) => {
      const keys = Array.from({ length: applications }, (_, i) => ({ token: `t${i}`, application: `app_${i}` }));
      return checkConfig({ keys, perApplication }, 'test');
    };
    const { claims, setApplications } = await openStore(configWith(1), openLog().log);
    const command = { fingerprint: 'f', token: 't', leaseMs: 1, retentionMs: 60_000, onOrphan: 'reject' } as const;
    const begin = async (scope: string, key: number) =>
      claims.begin({ scope, key: `${key}` }, { ...command, dispatch: false });
    for (let key = 0; key < 30_000; key++) await begin('app_0', key);
    setApplications(configWith(4));
    await expect(begin('app_0', 30_000)).rejects.toMatchObject({ code: 'scope_full' });
    for (let key = 0; key < 25_000; key++) await begin('app_1', key);
    await expect(begin('app_1', 25_000)).rejects.toMatchObject({ code: 'scope_full' });
    expect(await claims.inspect({ scope: 'app_0', key: '29999' })).toBeDefined();
    setApplications(configWith(1));
    await begin('app_0', 30_000);
  });
});
