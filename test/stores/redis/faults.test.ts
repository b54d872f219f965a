import { setTimeout as sleep } from 'node:timers/promises';
import { patient } from 'headgate-testbed/patience';
import { Caller, HEALTHY, type Outcome } from 'headgate-testbed/redis-load';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { describe, expect, it } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import type { OnStoreFailure } from '../../../src/stores/shared/failover.ts';
import { CLIENTS } from '../../support/redis-clients.ts';

const DEADLINE_MS = 200;
const SLACK_MS = patient(1_000);
const MAX = 20;
const windowSet = createWindowSet([], parseLimit([`${MAX}/1h`]));

interface Fault {
  readonly name: string;
  begin(server: RedisServer): Promise<void> | void;
  end(server: RedisServer): Promise<void> | void;
  /** How often the server starts with empty counters. Each time gives a new allowance. */
  readonly lives: number;
}

const FAULTS: readonly Fault[] = [
  { name: 'SIGSTOP and SIGCONT', begin: (server) => server.freeze(), end: (server) => server.thaw(), lives: 1 },
  { name: 'SIGKILL and restart', begin: (server) => server.kill(), end: (server) => server.restart(), lives: 2 },
];
const POLICIES: readonly OnStoreFailure[] = ['local', 'admit', 'refuse'];

/** What `onStoreFailure` promises for the checks during an outage. */
function expectPolicy(policy: OnStoreFailure, caller: Caller, asked: number): void {
  if (policy === 'refuse') expect(caller.count('store_timeout', 'store_unavailable')).toBe(asked);
  else if (policy === 'admit') expect(caller.count('degraded-accepted')).toBe(asked);
  else {
    expect(caller.count('degraded-accepted')).toBe(MAX);
    expect(caller.count('degraded-rejected')).toBe(asked - MAX);
  }
}

async function live(fault: Fault, policy: OnStoreFailure, connect: (typeof CLIENTS)[string]): Promise<void> {
  const server = await startRedis();
  const { client, disconnect } = await connect(server.port);
  try {
    const options = { deadlineMs: DEADLINE_MS, onStoreFailure: policy, denyCacheMaxMs: 0 };
    const store = createRedisStore(client, options);
    const healthy = new Caller(store, windowSet);
    for (let i = 0; i < 5; i++) await healthy.check();
    expect(healthy.count('accepted')).toBe(5);

    await fault.begin(server);
    const outage = new Caller(store, windowSet);
    const checks: Promise<Outcome>[] = [];
    for (let i = 0; i < 40; i++) {
      checks.push(outage.check());
      await sleep(20);
    }
    await Promise.all(checks);
    expect(outage.longestMs).toBeLessThan(DEADLINE_MS + SLACK_MS);
    expectPolicy(policy, outage, 40);
    expect(store.stats().breaker).not.toBe('closed');
    if (policy !== 'refuse') expect(store.stats().degraded).toBe(40);

    await fault.end(server);
    const after = new Caller(store, windowSet);
    await until(async () => HEALTHY.includes(await after.check()), 'decides again', 10_000);
    expect(store.stats().breaker).toBe('closed');
    for (let i = 0; i < MAX + 5; i++) await after.check();
    expect(after.longestMs).toBeLessThan(DEADLINE_MS + SLACK_MS);
    expect(after.outcomes.slice(-5)).toEqual(Array(5).fill('rejected'));
    expect(healthy.count('accepted') + after.count('accepted')).toBeLessThanOrEqual(fault.lives * MAX);
    if (policy === 'local') expect(outage.count('degraded-accepted') + after.count('degraded-accepted')).toBe(MAX);
    if (fault.lives === 1) {
      expect(store.stats().timeouts).toBeGreaterThan(0);
      expect(store.stats().late).toBeGreaterThan(0);
      expect(store.stats().late).toBeLessThanOrEqual(store.stats().timeouts);
    }
  } finally {
    disconnect();
    await server.stop();
  }
}

describe.each(FAULTS)('$name', (fault) => {
  describe.each(POLICIES)('with onStoreFailure %s', (policy) => {
    it.concurrent.each(Object.entries(CLIENTS))(
      'every check is answered in time, then the store recovers by itself: %s',
      (_client, connect) => live(fault, policy, connect),
    );
  });
});
