import { once } from 'node:events';
import { Redis } from 'ioredis';
import { createLimiter } from '../../src/index.ts';
import { createRedisStore } from '../../src/stores/redis/limits.ts';
import { createJobWorker } from '../../src/waiting/index.ts';

/** The work of a child process: `jobs` that wait for room in the windows of `limits`. */
export interface WaitingOrder {
  readonly port: number;
  readonly prefix: string;
  readonly limits: readonly string[];
  readonly jobs: number;
}

/** The results, printed as one line of JSON. The process must then exit by itself: otherwise something was left open. */
export interface WaitingReport {
  /** For each job, its number and the start of each window that it was charged to, in the order of their decisions. */
  readonly served: readonly { readonly job: number; readonly decidedAt: number; readonly startedAt: number[] }[];
  readonly degraded: number;
  /** Script calls to Redis. */
  readonly calls: number;
  /** Checks, of which several can share a call. */
  readonly checks: number;
}

const order: WaitingOrder = JSON.parse(process.argv[2] as string);

async function main(): Promise<void> {
  const client = new Redis({ host: '127.0.0.1', port: order.port });
  if (client.status !== 'ready') await once(client, 'ready');
  const store = createRedisStore(client, { prefix: order.prefix, deadlineMs: 10_000 });
  const limiter = createLimiter({ store, limits: { allMethods: order.limits } });
  // The first call loads the script. The processes begin together, when their input ends.
  await limiter.peek({ account: 'acc', route: 'another' });
  const before = store.stats().calls;
  process.stdout.write('ready\n');
  process.stdin.resume();
  await once(process.stdin, 'end');
  const worker = createJobWorker(limiter);
  const served: WaitingReport['served'][number][] = [];
  let degraded = 0;
  const one = async (job: number): Promise<void> => {
    const decision = await worker.acquire({ account: 'acc', route: 'route' });
    if (decision.degraded) degraded++;
    const startedAt = decision.trace.map((window) => window.startedAt as number);
    served.push({ job, decidedAt: decision.decidedAt, startedAt });
  };
  await Promise.all(Array.from({ length: order.jobs }, (_, job) => one(job)));
  const { calls, coalesced } = store.stats();
  const report: WaitingReport = { served, degraded, calls: calls - before, checks: calls - before + coalesced };
  process.stdout.write(`${JSON.stringify(report)}\n`);
  client.disconnect();
}

void main();
