import { once } from 'node:events';
import { Caller, type Outcome, startLoad } from 'headgate-testbed/redis-load';
import { parseLimit } from '../../src/core/limit.ts';
import { createWindowSet } from '../../src/core/window-set.ts';
import { createRedisStore } from '../../src/stores/redis/limits.ts';
import type { OnStoreFailure } from '../../src/stores/shared/failover.ts';
import { CLIENTS, type Connect } from './redis-clients.ts';

/** The work of a child process until its input ends: one store per client checks every route in turn. */
export interface LoadOrder {
  readonly port: number;
  readonly clients: readonly string[];
  readonly policy: OnStoreFailure;
  readonly deadlineMs: number;
  /** Limit of All methods, by route. */
  readonly limits: Readonly<Record<string, string>>;
}

/** The results of one store. */
export interface StoreReport {
  readonly outcomes: Partial<Record<Outcome, number>>;
  readonly longestMs: number;
  readonly perInstance: [string, number][];
  readonly perLocalInstance: [string, number][];
  readonly stats: ReturnType<Caller['store']['stats']>;
}

/** A line of output: whether Redis decides for a client now, or, at the end, the results of all stores. */
export type LoadLine =
  | { readonly client: string; readonly healthy: boolean }
  | { readonly stores: readonly StoreReport[]; readonly unhandled: number; readonly timers: number };

/** Longest time in which a client must end its own timers: ioredis waits 2 s for the other end of a socket. */
const TIMERS_MS = 4_000;

const order: LoadOrder = JSON.parse(process.argv[2] as string);
const print = (line: LoadLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const routes = Object.keys(order.limits);
const windowSets = Object.fromEntries(
  Object.entries(order.limits).map(([route, limit]) => [route, createWindowSet([], parseLimit([limit]))]),
);
let unhandled = 0;
process.on('unhandledRejection', () => unhandled++);

/** Prints a line when the health of its store changes. */
class WatchedCaller extends Caller {
  name = '';
  #healthy: boolean | undefined;

  override async check(route?: string): Promise<Outcome> {
    const outcome = await super.check(route);
    // A rejection proves nothing: it may come from the local cache.
    if (outcome === 'rejected') return outcome;
    const healthy = outcome === 'accepted';
    if (healthy !== this.#healthy) print({ client: this.name, healthy });
    this.#healthy = healthy;
    return outcome;
  }
}

async function main(): Promise<void> {
  const connected = await Promise.all(order.clients.map((name) => (CLIENTS[name] as Connect<number>)(order.port)));
  const loads = connected.map(({ client }, i) => {
    const store = createRedisStore(client, { deadlineMs: order.deadlineMs, onStoreFailure: order.policy });
    const caller = new WatchedCaller(store, windowSets);
    caller.name = order.clients[i] as string;
    return startLoad(caller, { routes });
  });
  process.stdin.resume();
  await once(process.stdin, 'end');
  await Promise.all(loads.map((load) => load.stop()));
  for (const { disconnect } of connected) disconnect();
  const timers = await timersLeft();
  print({ stores: loads.map(({ caller }) => report(caller)), unhandled, timers });
}

function report({ outcomes, longestMs, perInstance, perLocalInstance, store }: Caller): StoreReport {
  const counts: Partial<Record<Outcome, number>> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return {
    outcomes: counts,
    longestMs,
    perInstance: [...perInstance],
    perLocalInstance: [...perLocalInstance],
    stats: store.stats(),
  };
}

/**
 * How many timers keep the process alive after the clients had time to end theirs. It waits without a timer, and without
 * a processor, which the other processes of the test need.
 */
async function timersLeft(): Promise<number> {
  const end = performance.now() + TIMERS_MS;
  const never = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const timers = process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    if (timers === 0 || performance.now() > end) return timers;
    Atomics.wait(never, 0, 0, 10);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

void main();
