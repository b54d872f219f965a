import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { parseLimit } from '../../src/core/limit.ts';
import { createWindowSet } from '../../src/core/window-set.ts';
import { createRedisStore } from '../../src/stores/redis/limits.ts';

/** The work of a child process: `checks` on one key, `inFlight` at a time. */
export interface WorkerOrder {
  readonly ports: readonly number[];
  readonly cluster: boolean;
  readonly prefix: string;
  readonly limit: string;
  readonly checks: number;
  readonly inFlight: number;
}

/**
 * The results, printed as one line of JSON. The process must then exit by itself: otherwise something was left open.
 */
export interface WorkerReport {
  readonly accepted: number;
  readonly rejected: number;
  readonly degraded: number;
  readonly unhandled: number;
}

const order: WorkerOrder = JSON.parse(process.argv[2] as string);
const nodes = order.ports.map((port) => ({ host: '127.0.0.1', port }));
const client = order.cluster ? new Cluster(nodes) : new Redis({ host: '127.0.0.1', port: order.ports[0] as number });
const store = createRedisStore(client, { prefix: order.prefix, deadlineMs: 10_000, denyCacheMaxMs: 0 });
const windowSet = createWindowSet([], parseLimit([order.limit]));

const results = { accepted: 0, rejected: 0, degraded: 0, unhandled: 0 };
process.on('unhandledRejection', () => results.unhandled++);
let left = order.checks;

async function check(): Promise<void> {
  while (left-- > 0) {
    const { accepted, degraded } = await store.consume('acc', 'route', windowSet, 1);
    results[accepted ? 'accepted' : 'rejected']++;
    if (degraded) results.degraded++;
  }
}

async function main(): Promise<void> {
  // Before that, the store's failure policy would decide.
  if (client.status !== 'ready') await once(client, 'ready');
  await Promise.all(Array.from({ length: order.inFlight }, check));
  client.disconnect();
  process.stdout.write(JSON.stringify(results));
}

void main();
