import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { createLimiter, type Decision } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createJobWorker } from '../../src/waiting/index.ts';
import { createDistantStore } from '../support/distant-store.ts';
import { createFakeTimers, settled } from '../support/fake-timers.ts';

const SUBJECT = { account: 'acc', route: 'route' };

/** What was served to whom. */
interface Served {
  readonly worker: number;
  readonly job: number;
  readonly cost: number;
  readonly at: number;
  readonly decision: Decision;
}

/** Serves the jobs of each worker, all given by their costs, on one store. All of it is in fake time. */
async function serve(limits: readonly string[], costsOfWorkers: readonly (readonly number[])[], latency: () => number) {
  const timers = createFakeTimers(0);
  const store = createDistantStore(createMemoryStore({ clock: timers }), timers, latency);
  const served: Served[] = [];
  const workers = costsOfWorkers.map((costs, worker) => {
    const waits = createJobWorker(createLimiter({ store, limits: { allMethods: limits } }), {
      timers,
      maxQueue: 10_000,
    });
    for (const [job, cost] of costs.entries()) {
      void waits
        .acquire({ ...SUBJECT, cost })
        .then((decision) => served.push({ worker, job, cost, at: timers.now(), decision }));
    }
    return waits;
  });
  while (await timers.step());
  await settled();
  return { served, store, waiting: workers.reduce((sum, { waiting }) => sum + waiting, 0) };
}

/** When the last of the jobs can be decided at the earliest, if each is decided as soon as it fits. */
function optimum(limits: readonly string[], costs: readonly number[]): number {
  const timers = createFakeTimers(0);
  let now = 0;
  const store = createMemoryStore({ clock: { ...timers, now: () => now } });
  const limiter = createLimiter({ store, limits: { allMethods: limits } });
  for (const cost of costs) {
    for (;;) {
      const { accepted, shown } = limiter.consumeSync({ ...SUBJECT, cost });
      if (accepted) break;
      now += shown?.resetMs ?? 0;
    }
  }
  return now;
}

/** The most that any instance of each window was charged. */
function mostPerInstance(served: readonly Served[]): Map<number, number> {
  const charged = new Map<string, { durationMs: number; sum: number }>();
  for (const { decision, cost } of served) {
    for (const { durationMs, startedAt } of decision.trace) {
      const name = `${durationMs} ${startedAt}`;
      charged.set(name, { durationMs, sum: (charged.get(name)?.sum ?? 0) + cost });
    }
  }
  const most = new Map<number, number>();
  for (const { durationMs, sum } of charged.values()) most.set(durationMs, Math.max(most.get(durationMs) ?? 0, sum));
  return most;
}

/** Repeatable latencies. */
function latencies(seed: number, maxMs: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state % (maxMs + 1);
  };
}

const jobs = (max: number) => fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: max });

describe('workers that share a store', () => {
  it('serve every job in the order of its worker, never exceed a window, and lose only latency', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 3, max: 8 }),
        fc.integer({ min: 3, max: 20 }),
        fc.array(jobs(25), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 4 }),
        fc.nat(),
        async (short, long, workers, maxLatencyMs, seed) => {
          const limits = [`${short}/100ms`, `${long}/1s`];
          const { served, waiting } = await serve(limits, workers, latencies(seed, maxLatencyMs));
          expect(waiting).toBe(0);
          expect(served).toHaveLength(workers.flat().length);
          for (const [worker, costs] of workers.entries()) {
            expect(served.filter((each) => each.worker === worker).map(({ job }) => job)).toEqual([...costs.keys()]);
          }
          const most = mostPerInstance(served);
          expect(most.get(100) ?? 0).toBeLessThanOrEqual(short);
          expect(most.get(1_000) ?? 0).toBeLessThanOrEqual(long);
          // With one worker there is only one possible order, so the optimum is known for all costs.
          if (workers.length > 1) return;
          const costs = workers[0] as readonly number[];
          const windows = new Set(served.flatMap(({ decision }) => decision.trace.map((each) => each.startedAt))).size;
          const end = Math.max(0, ...served.map(({ decision }) => decision.decidedAt));
          // For each window: its first check is on its way, and then the others; the end is rounded up. Jobs of another
          // cost than the one in front ask after it.
          const changes = costs.filter((cost, i) => i > 0 && cost !== costs[i - 1]).length;
          const latencyMs = windows * (4 * maxLatencyMs + 2) + changes * 2 * maxLatencyMs;
          expect(end).toBeLessThanOrEqual(optimum(limits, costs) + latencyMs);
        },
      ),
      { numRuns: randomRuns(60) },
    );
  });

  it('1,000 jobs of 4 processes on 10/1s and 100/1m: within 2 % of the optimum, at most 1.2 calls per job', async () => {
    const limits = ['10/1s', '100/1m'];
    const costs = Array.from({ length: 250 }, () => 1);
    const { served, store } = await serve(limits, [costs, costs, costs, costs], latencies(7, 3));
    const best = optimum(limits, [...costs, ...costs, ...costs, ...costs]);
    expect(best).toBe(9 * 60_000 + 9 * 1_000);
    expect(served).toHaveLength(1_000);
    expect(mostPerInstance(served)).toEqual(
      new Map([
        [1_000, 10],
        [60_000, 100],
      ]),
    );
    expect(Math.max(...served.map(({ at }) => at))).toBeLessThanOrEqual(1.02 * best);
    expect(store.calls).toBeLessThanOrEqual(1.2 * 1_000);
  });
});
