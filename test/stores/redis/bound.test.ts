/**
 * One run with every fault, under load from several processes and clients. The total that is accepted stays below the
 * number that docs/redis.md documents for the failure policy, and Redis itself never accepts more than the max of a
 * window instance (S4, S5).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { patient } from 'headgate-testbed/patience';
import { tell } from 'headgate-testbed/redis-cluster';
import { totals } from 'headgate-testbed/redis-load';
import { startRedis } from 'headgate-testbed/redis-server';
import { expect, it } from 'vitest';
import { type LoadReport, loadProcesses, type OnTestFinished } from '../../support/redis-load-processes.ts';
import type { LoadOrder, StoreReport } from '../../support/redis-load-worker.ts';

const DEADLINE_MS = 200;
const SLACK_MS = patient(1_000);
const MAX = { long: 300, burst: 60 } as const;
const limits = { long: `${MAX.long}/1h`, burst: `${MAX.burst}/200ms` };
const CLIENTS_OF = [
  ['ioredis by default', 'node-redis that fails fast'],
  ['ioredis that fails fast', 'node-redis by default'],
];
const STORES = 4;
const ROUNDS = 2;
/** How often the server starts with empty counters: each restart loses all data. */
const LIVES = 1 + ROUNDS;

const start = loadProcesses();

async function run(policy: LoadOrder['policy'], onTestFinished: OnTestFinished): Promise<LoadReport[]> {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const processes = CLIENTS_OF.map((clients) =>
    start({ port: server.port, clients, policy, deadlineMs: DEADLINE_MS, limits }, onTestFinished),
  );
  const all = (state: 'healthy' | 'unhealthy'): Promise<unknown> =>
    Promise.all(processes.map((each) => each.becomes(state)));
  await all('healthy');
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < 5; i++) {
      await tell(server.port, 'SCRIPT', 'FLUSH');
      await sleep(20);
    }
    server.freeze();
    await all('unhealthy');
    server.thaw();
    await all('healthy');
    await server.kill();
    await all('unhealthy');
    await server.restart();
    await all('healthy');
  }
  return Promise.all(processes.map((each) => each.end()));
}

const sum = (counts: Iterable<[string, number]>, route: keyof typeof MAX): number =>
  [...counts].filter(([instance]) => instance.startsWith(`${route} `)).reduce((total, [, count]) => total + count, 0);
const maxOf = (instance: string): number => (instance.startsWith('long ') ? MAX.long : MAX.burst);

it.concurrent.for([
  { policy: 'local', most: (LIVES + STORES) * MAX.long },
  { policy: 'refuse', most: LIVES * MAX.long },
] as const)(
  'S17: with $policy at most $most requests are accepted, whatever happens',
  async ({ policy, most }, { onTestFinished }) => {
    const reports = await run(policy, onTestFinished);
    const stores: StoreReport[] = reports.flatMap((report) => report.stores);
    expect(stores).toHaveLength(STORES);

    const byRedis = totals(stores);
    for (const [instance, count] of byRedis) expect(count, instance).toBeLessThanOrEqual(maxOf(instance));
    const lives = [...byRedis.keys()].filter((instance) => instance.startsWith('long ')).length;
    expect(lives).toBeGreaterThan(0);
    expect(lives).toBeLessThanOrEqual(LIVES);
    expect(sum(byRedis, 'long')).toBeLessThanOrEqual(LIVES * MAX.long);

    let degraded = 0;
    for (const { perLocalInstance, outcomes, longestMs, stats } of stores) {
      for (const [instance, count] of perLocalInstance) expect(count, instance).toBeLessThanOrEqual(maxOf(instance));
      // This process has a single window instance of one hour for the whole run.
      expect(sum(perLocalInstance, 'long')).toBeLessThanOrEqual(MAX.long);
      degraded += sum(perLocalInstance, 'long');
      const refused = (outcomes.store_timeout ?? 0) + (outcomes.store_unavailable ?? 0);
      if (policy === 'local') expect(refused).toBe(0);
      else
        expect([refused > 0, outcomes['degraded-accepted'], outcomes['degraded-rejected']]).toEqual([
          true,
          undefined,
          undefined,
        ]);
      expect(longestMs).toBeLessThan(DEADLINE_MS + SLACK_MS);
      expect(stats).toMatchObject({ breaker: 'closed' });
      expect(stats.late).toBeLessThanOrEqual(stats.timeouts);
    }
    expect(degraded > 0).toBe(policy === 'local');
    expect(sum(byRedis, 'long') + degraded).toBeLessThanOrEqual(most);

    for (const { unhandled, timers } of reports) expect({ unhandled, timers }).toEqual({ unhandled: 0, timers: 0 });
  },
);
