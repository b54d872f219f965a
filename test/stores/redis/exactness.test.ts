import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { bundle } from 'headgate-testbed/bundle';
import { patient } from 'headgate-testbed/patience';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { WorkerOrder, WorkerReport } from '../../support/redis-worker.ts';

const run = promisify(execFile);
const { port, clusterPorts } = inject('redis');
const PROCESSES = 8;
const IN_FLIGHT = 64;
const LIMIT = 1_000;
const CHECKS = 512;

let worker: string;
beforeAll(async () => {
  worker = await bundle(resolve(import.meta.dirname, '../../support/redis-worker.ts'));
});
afterAll(() => rmSync(dirname(worker), { recursive: true, force: true }));

/** Runs one child process and returns its report. It must end by itself. */
async function work(order: WorkerOrder): Promise<WorkerReport> {
  const { stdout, stderr } = await run(process.execPath, [worker, JSON.stringify(order)], { timeout: 90_000 });
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

const sum = (reports: readonly WorkerReport[], field: keyof WorkerReport): number =>
  reports.reduce((total, report) => total + report[field], 0);

describe('one key, many processes', () => {
  it.each([
    ['a single server', false, [port]],
    ['a cluster', true, clusterPorts],
  ])(
    'S4, S5: 8 processes with 64 concurrent checks each share exactly 1,000 requests, on %s',
    async (_on, cluster, ports) => {
      const prefix = `exact-${process.pid}-${cluster}`;
      const order = { ports, cluster, prefix, limit: `${LIMIT}/1h`, checks: CHECKS, inFlight: IN_FLIGHT };
      const reports = await Promise.all(Array.from({ length: PROCESSES }, () => work(order)));
      expect(sum(reports, 'accepted')).toBe(LIMIT);
      expect(sum(reports, 'rejected')).toBe(PROCESSES * CHECKS - LIMIT);
      expect(sum(reports, 'degraded')).toBe(0);
    },
  );

  it('a process that has used the store and disconnected its client ends by itself, with no unhandled rejection', async () => {
    const order = { ports: [port], cluster: false, limit: '5/1h', checks: 10, inFlight: 10 };
    const before = performance.now();
    expect(await work({ ...order, prefix: `exit-${process.pid}` })).toMatchObject({ accepted: 5, unhandled: 0 });
    // The deadline of its calls is 10 s, so a timer that is left would be noticed.
    expect(performance.now() - before).toBeLessThan(patient(10_000));
  });
});
