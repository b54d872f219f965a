import { patient } from 'headgate-testbed/patience';
import { describe, expect, inject, it } from 'vitest';
import { waitInProcesses } from '../support/waiting-processes.ts';

const { port } = inject('redis');
const PROCESSES = 4;
const JOBS = 400;

describe('workers of several processes that share windows in Redis', () => {
  it('never exceed a window, serve every job in order, and call Redis at most 1.2 times per job', async () => {
    const limits = ['10/100ms', '100/1s'];
    const prefix = `waiting-${process.pid}`;
    const reports = await waitInProcesses(PROCESSES, { port, prefix, limits, jobs: JOBS / PROCESSES });

    for (const { served, degraded } of reports) {
      expect(served.map(({ job }) => job)).toEqual(Array.from({ length: JOBS / PROCESSES }, (_, job) => job));
      expect(degraded).toBe(0);
    }
    const served = reports.flatMap((report) => report.served);
    for (const [window, max] of [10, 100].entries()) {
      const perInstance = new Map<number, number>();
      for (const { startedAt } of served) {
        const start = startedAt[window] as number;
        perInstance.set(start, (perInstance.get(start) ?? 0) + 1);
      }
      expect(Math.max(...perInstance.values())).toBe(max);
    }
    const times = served.map(({ decidedAt }) => decidedAt);
    // At best three windows of a second, and then nine of 100 ms. A busy machine is late for each.
    const best = 3 * 1_000 + 9 * 100;
    const took = Math.max(...times) - Math.min(...times);
    expect(took).toBeGreaterThanOrEqual(best);
    expect(took).toBeLessThan(patient(2 * best));
    expect(reports.reduce((sum, { calls }) => sum + calls, 0)).toBeLessThanOrEqual(1.2 * JOBS);
  });
});
