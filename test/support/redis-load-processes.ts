import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { bundle } from 'headgate-testbed/bundle';
import { until } from 'headgate-testbed/redis-server';
import { afterAll, beforeAll, expect, type TestContext } from 'vitest';
import type { LoadLine, LoadOrder, StoreReport } from './redis-load-worker.ts';

/** The results of a child process, and how long it took to exit. */
export interface LoadReport {
  readonly stores: readonly StoreReport[];
  readonly unhandled: number;
  readonly timers: number;
  /** Milliseconds from the end of its work to its exit. */
  readonly exitMs: number;
}

export interface LoadProcess {
  /** Waits until Redis decides for every client ('healthy'), or for none of them ('unhealthy'). */
  becomes(state: 'healthy' | 'unhealthy'): Promise<void>;
  /** Ends its work, and waits until it exits by itself. */
  end(): Promise<LoadReport>;
}

/** The hook at the end of one test. It comes from the context of the test, because tests may run at the same time. */
export type OnTestFinished = TestContext['onTestFinished'];

/** Starts processes that send checks. Call it at the top of a test file. */
export function loadProcesses(): (order: LoadOrder, onTestFinished: OnTestFinished) => LoadProcess {
  let worker: string;
  beforeAll(async () => {
    worker = await bundle(join(import.meta.dirname, 'redis-load-worker.ts'));
  });
  afterAll(() => rmSync(dirname(worker), { recursive: true, force: true }));
  return (order, onTestFinished) => start(worker, order, onTestFinished);
}

function start(worker: string, order: LoadOrder, onTestFinished: OnTestFinished): LoadProcess {
  const child = spawn(process.execPath, [worker, JSON.stringify(order)], { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const health = new Map<string, boolean>();
  let report: Omit<LoadReport, 'exitMs'> | undefined;
  createInterface(child.stdout).on('line', (text) => {
    const line: LoadLine = JSON.parse(text);
    if ('stores' in line) report = line;
    else health.set(line.client, line.healthy);
  });
  return {
    becomes: (state) =>
      until(
        () => order.clients.every((client) => health.get(client) === (state === 'healthy')),
        `${order.clients.join()}: ${state}`,
      ),
    async end() {
      child.stdin.end();
      await until(() => report !== undefined, 'its report');
      const reported = performance.now();
      expect(await exited).toBe(0);
      return { ...(report as NonNullable<typeof report>), exitMs: performance.now() - reported };
    },
  };
}
