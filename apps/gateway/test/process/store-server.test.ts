/** Gateways with their counters on one server share one allowance, and answer in time while it is down (S17). */

import { NIGHTLY } from 'headgate-testbed/nightly';
import { eventually } from 'headgate-testbed/raw-http';
import { startRedis } from 'headgate-testbed/redis-server';
import { startUpstream } from 'headgate-testbed/upstream';
import { describe, expect, inject, it } from 'vitest';
import {
  type Config,
  configOf,
  expectProblem,
  type Gateway,
  runHeadgate,
  startGateway,
  writeConfig,
} from '../support/gateway.ts';
import { isRedis, KIND, storeServerForFile } from '../support/store-server.ts';

/** For a change, store.test.ts proves the other cases: with Redis, and with gateways in its own process. */
const EVERY_CASE = NIGHTLY || !isRedis;
const DEADLINE_MS = 150;
const SLACK_MS = 1_000;
const PATH = '/api/v1/chats?account_id=';

const server = await storeServerForFile();
const upstream = await startUpstream();

function storeConfig(max: number, rest: Config = {}): Config {
  const limits = { default: { allMethods: [`${max}/1h`] } };
  return configOf(upstream.url, { store: server.store(), storeDeadlineMs: DEADLINE_MS, limits, ...rest });
}

async function timed(gateway: Gateway, account: string) {
  const began = performance.now();
  const reply = await gateway.ask('GET', PATH + account);
  return { reply, ms: performance.now() - began };
}

const clusterUrl = (): string =>
  `redis-cluster://${inject('redis')
    .clusterPorts.map((port) => `127.0.0.1:${port}`)
    .join()}`;
const rateFields = (headers: object): string[] =>
  Object.keys(headers).filter((name) => /ratelimit|retry-after/.test(name));
const scrape = async ({ adminPort }: Gateway) => (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
const health = async (gateway: Gateway) => JSON.parse((await gateway.ask('GET', '/healthz')).text).status;

describe.runIf(EVERY_CASE)('two gateways on one store', () => {
  // The cluster is shared with other test files: an account that none of them uses.
  it.each(isRedis ? ['one server', 'a cluster'] : ['one server'])(
    'admit one allowance between them: %s',
    async (kind) => {
      // The count is exact only if no decision is degraded, and a busy machine must not cause one.
      const config = storeConfig(40, {
        storeDeadlineMs: 10_000,
        ...(kind === 'a cluster' ? { store: clusterUrl() } : {}),
      });
      const gateways = await Promise.all([startGateway(config), startGateway(config)]);
      const before = upstream.seen.length;
      const asked = Array.from({ length: 100 }, (_, i) => (gateways[i % 2] as Gateway).ask('GET', `${PATH}acc_9`));
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(40);
      expect(statuses.filter((status) => status === 429)).toHaveLength(60);
      expect(upstream.seen.length - before).toBe(40);
      await Promise.all(gateways.map((gateway) => gateway.stop()));
    },
  );
});

describe('a store that is frozen', () => {
  it.each([['local', 200] as const, ['admit', 200] as const, ...(EVERY_CASE ? [['refuse', 503] as const] : [])])(
    '%s: answered in time, without rate-limit headers; then it recovers by itself',
    async (policy, status) => {
      const gateway = await startGateway(storeConfig(1_000, { onStoreFailure: policy }));
      expect((await timed(gateway, 'acc_2')).reply.headers['x-ratelimit-limit']).toBe('1000');
      server.freeze();
      try {
        for (let i = 0; i < 8; i++) {
          const { reply, ms } = await timed(gateway, 'acc_2');
          expect(reply.status).toBe(status);
          expect(rateFields(reply.headers)).toEqual([]);
          expect(ms).toBeLessThan(DEADLINE_MS + SLACK_MS);
          if (policy === 'refuse') expectProblem(reply, 503, 'errors/service_unavailable');
        }
        expect(await health(gateway)).toBe('degraded');
      } finally {
        server.thaw();
      }
      // It must recover even if only the load balancer's health checks come: it sends no requests to a degraded
      // gateway.
      await eventually(async () => (await health(gateway)) === 'ok', 'recovery');
      await eventually(
        async () => 'x-ratelimit-limit' in (await timed(gateway, 'acc_2')).reply.headers,
        'a whole decision',
      );
      expect((await gateway.stop()).code).toBe(0);
    },
  );

  it.runIf(EVERY_CASE)(
    'local: this process still applies the limit, and its 429 has no rate-limit headers',
    async () => {
      const gateway = await startGateway(storeConfig(3));
      server.freeze();
      try {
        const replies = [];
        for (let i = 0; i < 6; i++) replies.push((await timed(gateway, 'acc_3')).reply);
        expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429, 429]);
        expect(replies.flatMap(({ headers }) => rateFields(headers))).toEqual([]);
        expect(replies[5]?.text).toContain('is used up; retry later.');
      } finally {
        server.thaw();
      }
      await gateway.stop();
    },
  );
});

describe('a store that is down', () => {
  it.runIf(EVERY_CASE)('at the start is a warning: the gateway serves degraded, and recovers', async () => {
    await server.kill();
    const gateway = await startGateway(storeConfig(10));
    expect(await health(gateway)).toBe('degraded');
    const isUp = async () => /^headgate_store_up (\d)$/m.exec(await scrape(gateway))?.[1];
    expect(await isUp()).toBe('0');
    expect((await timed(gateway, 'acc_4')).reply.status).toBe(200);
    expect(
      gateway.log().some(({ level, msg }) => level === 40 && String(msg).startsWith(`${KIND} is unreachable`)),
    ).toBe(true);
    await server.restart();
    await eventually(
      async () => 'x-ratelimit-limit' in (await timed(gateway, 'acc_5')).reply.headers,
      'a whole decision',
    );
    await eventually(async () => (await health(gateway)) === 'ok', 'health');
    expect(await isUp()).toBe('1');
    await gateway.stop();
  });

  it('killed while serving: every answer in time, and no 429 because of it; /metrics has the metrics of the store', async () => {
    const gateway = await startGateway(storeConfig(1_000));
    await timed(gateway, 'acc_6');
    const text = await scrape(gateway);
    for (const name of ['calls', 'deadline_misses', 'late_answers', 'coalesced_checks', 'local_rejections']) {
      expect(text).toMatch(new RegExp(`^headgate_${KIND}_store_${name}_total \\d`, 'm'));
    }
    expect(text).toMatch(new RegExp(`^headgate_${KIND}_store_breaker \\d`, 'm'));
    await server.kill();
    for (let i = 0; i < 10; i++) {
      const { reply, ms } = await timed(gateway, 'acc_6');
      expect(reply.status).toBe(200);
      expect(ms).toBeLessThan(DEADLINE_MS + SLACK_MS);
    }
    await server.restart();
    await eventually(
      async () => 'x-ratelimit-limit' in (await timed(gateway, 'acc_6')).reply.headers,
      'a whole decision',
    );
    await gateway.stop();
  });
});

describe('doctor', () => {
  it('reports no problem for a good server', async () => {
    const { code, stdout } = await runHeadgate(['doctor', '--config', writeConfig(storeConfig(1))]);
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(isRedis ? /ok +eviction +noeviction/ : /ok +schema/),
    });
  });

  it('reports a server that is down, without its password', async () => {
    const store = `${KIND}://user:s3cret@127.0.0.1:1/0`;
    const { code, all } = await runHeadgate(['doctor', '--config', writeConfig(storeConfig(1, { store }))]);
    expect({ code, all }).toEqual({ code: 1, all: expect.stringMatching(/fault +reachable/) });
    expect(all).not.toContain('s3cret');
  });

  it.runIf(isRedis)('warns about an eviction policy that would lose counters', async () => {
    const evicting = await startRedis('--maxmemory-policy', 'allkeys-lru');
    const store = `redis://127.0.0.1:${evicting.port}`;
    const { code, stdout } = await runHeadgate(['doctor', '--config', writeConfig(storeConfig(1, { store }))]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/warning +eviction.*noeviction/) });
    await evicting.stop();
  });
});
