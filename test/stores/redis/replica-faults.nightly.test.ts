/** Without a cluster: a replica that replaces its master, manually and by Sentinel (S17). */

import { patient } from 'headgate-testbed/patience';
import { tell } from 'headgate-testbed/redis-cluster';
import { Caller, HEALTHY, startLoad } from 'headgate-testbed/redis-load';
import { masterOf, SENTINEL_NAME, startReplica, startSentinel } from 'headgate-testbed/redis-sentinel';
import { type RedisServer, startRedis, until } from 'headgate-testbed/redis-server';
import { Redis } from 'ioredis';
import { describe, expect, it, type TestContext } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLIENTS, type Connect, ofIoredis } from '../../support/redis-clients.ts';

const DEADLINE_MS = 250;
const SLACK_MS = patient(1_000);

/**
 * Stops a server at the end of the test with this context. Concurrent tests can only be identified by their context.
 */
const stopsWith =
  ({ onTestFinished }: TestContext) =>
  async (starting: Promise<RedisServer>): Promise<RedisServer> => {
    const server = await starting;
    onTestFinished(() => server.stop());
    return server;
  };

describe('a replica', () => {
  const MAX = 20;
  const SPENT = 8;
  const windowSet = createWindowSet([], parseLimit([`${MAX}/1h`]));

  it.concurrent.for(Object.entries(CLIENTS))(
    'refuses to write (READONLY), and continues with the counts of its master once it is promoted: %s',
    async ([, connect], context) => {
      const running = stopsWith(context);
      const master = await running(startRedis('--repl-diskless-sync-delay', '0'));
      const replica = await running(startReplica(master.port));
      const errors: Error[] = [];
      const callersOf = async (port: number): Promise<[exact: Caller, bounded: Caller]> => {
        const { client, disconnect } = await connect(port);
        context.onTestFinished(disconnect);
        const onError = (error: unknown): void => void errors.push(error as Error);
        const callerOf = (deadlineMs: number): Caller =>
          new Caller(createRedisStore(client, { deadlineMs, denyCacheMaxMs: 0, onError }), windowSet);
        return [callerOf(10_000), callerOf(DEADLINE_MS)];
      };
      const [before] = await callersOf(master.port);
      for (let i = 0; i < SPENT; i++) expect(await before.check()).toBe('accepted');
      const hasAll = async (): Promise<boolean> =>
        (await tell(replica.port, 'DBSIZE')) === 1 && Number(await tell(master.port, 'WAIT', 1, 1_000)) === 1;
      await until(hasAll, 'the replica has all data');
      await master.kill();

      const [after, bounded] = await callersOf(replica.port);
      await until(async () => {
        expect(await bounded.check()).toBe('degraded-accepted');
        return errors.some(({ message }) => message.includes('READONLY'));
      }, 'it replies READONLY');
      await tell(replica.port, 'REPLICAOF', 'NO', 'ONE');
      await until(async () => HEALTHY.includes(await bounded.check()), 'decides again');
      expect(bounded.longestMs).toBeLessThan(DEADLINE_MS + SLACK_MS);
      for (let i = 0; i < MAX; i++) await after.check();
      expect(after.outcomes.at(-1)).toBe('rejected');
      const accepted = [before, bounded, after].reduce((sum, caller) => sum + caller.count('accepted'), 0);
      expect(accepted).toBeLessThanOrEqual(MAX);
      // Calls that were given up may have been counted.
      expect(accepted).toBeGreaterThanOrEqual(MAX - bounded.store.stats().timeouts);
    },
  );
});

describe('Sentinel', () => {
  const MAX = 500;
  const windowSet = createWindowSet([], parseLimit([`${MAX}/1h`]));
  const sentinelClient =
    (options: object): Connect<number> =>
    (port) =>
      ofIoredis(new Redis({ sentinels: [{ host: '127.0.0.1', port }], name: SENTINEL_NAME, ...options }));
  const SENTINEL_CLIENTS = [
    sentinelClient({}),
    sentinelClient({ enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false }),
  ];

  it('replaces a killed master by a replica: every check is answered in time, and the same stores continue with it', async (context) => {
    const running = stopsWith(context);
    const master = await running(startRedis('--repl-diskless-sync-delay', '0'));
    const replica = await running(startReplica(master.port));
    const sentinel = await running(startSentinel(master.port));
    const loads = await Promise.all(
      SENTINEL_CLIENTS.map(async (connect) => {
        const { client, disconnect } = await connect(sentinel.port);
        context.onTestFinished(disconnect);
        const store = createRedisStore(client, { deadlineMs: DEADLINE_MS, denyCacheMaxMs: 0 });
        return startLoad(new Caller(store, windowSet), { inFlight: 2, pauseMs: 10 });
      }),
    );
    const callers = loads.map(({ caller }) => caller);
    await until(() => callers.every((caller) => caller.count('accepted') > 20), 'both decide');

    await master.kill();
    await until(async () => (await masterOf(sentinel)) === replica.port, 'the replica is the master');
    const isBack = ({ outcomes }: Caller): boolean => outcomes.slice(-5).every((outcome) => HEALTHY.includes(outcome));
    await until(() => callers.every(isBack), 'both decide again');
    const isFull = ({ outcomes }: Caller): boolean => outcomes.slice(-5).every((outcome) => outcome === 'rejected');
    await until(() => callers.every(isFull), 'the window is full');
    await Promise.all(loads.map((load) => load.stop()));

    const byRedis = callers.reduce((sum, caller) => sum + caller.count('accepted'), 0);
    // Counts that the dead master had not replicated are lost, so as many can be accepted again.
    expect(byRedis).toBeLessThanOrEqual(2 * MAX);
    for (const caller of callers) {
      expect(caller.count('degraded-accepted', 'degraded-rejected')).toBeGreaterThan(0);
      expect(caller.count('degraded-accepted')).toBeLessThanOrEqual(MAX);
      expect(caller.count('store_timeout', 'store_unavailable')).toBe(0);
      expect(caller.longestMs).toBeLessThan(DEADLINE_MS + SLACK_MS);
      expect(caller.store.stats().breaker).toBe('closed');
    }
  });
});
