import { once } from 'node:events';
import { parseLimit } from '../../src/core/limit.ts';
import { createPlan } from '../../src/core/plan.ts';
import { createRedisStore, type RedisStoreStats } from '../../src/stores/redis/limits.ts';
import type { OnStoreFailure } from '../../src/stores/shared/failover.ts';
import { CLIENTS, type Connect } from './redis-clients.ts';
import { Caller, type Outcome, startLoad } from './redis-load.ts';

/** What a child process is to do until its input ends: ask by a store for each client, for every route in turn. */
export interface LoadOrder {
  readonly port: number;
  readonly clients: readonly string[];
  readonly policy: OnStoreFailure;
  readonly deadlineMs: number;
  /** Limit of All methods, by route. */
  readonly limits: Readonly<Record<string, string>>;
}

/** What one store saw. */
export interface StoreReport {
  readonly outcomes: Partial<Record<Outcome, number>>;
  readonly longestMs: number;
  readonly perInstance: [string, number][];
  readonly perLocalInstance: [string, number][];
  readonly stats: RedisStoreStats;
}

/** A line of output: whether Redis decides now for a client, and at the end what all of them saw. */
export type LoadLine =
  | { readonly client: string; readonly healthy: boolean }
  | { readonly stores: readonly StoreReport[]; readonly unhandled: number; readonly timers: number };

/** Longest that a client may take to let go of its own timers: ioredis waits 2 s for the other end of a socket. */
const LET_GO_MS = 4_000;

const order: LoadOrder = JSON.parse(process.argv[2] as string);
const say = (line: LoadLine): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const routes = Object.keys(order.limits);
const plans = Object.fromEntries(
  Object.entries(order.limits).map(([route, limit]) => [route, createPlan([], parseLimit([limit]))]),
);
let unhandled = 0;
process.on('unhandledRejection', () => unhandled++);

/** Says when its health changes. */
class Watched extends Caller {
  name = '';
  #healthy: boolean | undefined;

  override async check(route?: string): Promise<Outcome> {
    const outcome = await super.check(route);
    // A rejection tells nothing: it may have been certain, and not been asked for.
    if (outcome === 'rejected') return outcome;
    const healthy = outcome === 'accepted';
    if (healthy !== this.#healthy) say({ client: this.name, healthy });
    this.#healthy = healthy;
    return outcome;
  }
}

async function main(): Promise<void> {
  const connected = await Promise.all(order.clients.map((name) => (CLIENTS[name] as Connect<number>)(order.port)));
  const loads = connected.map(({ client }, i) => {
    const store = createRedisStore(client, { deadlineMs: order.deadlineMs, onStoreFailure: order.policy });
    const caller = new Watched(store, plans);
    caller.name = order.clients[i] as string;
    return startLoad(caller, { routes });
  });
  process.stdin.resume();
  await once(process.stdin, 'end');
  await Promise.all(loads.map((load) => load.stop()));
  for (const { disconnect } of connected) disconnect();
  const timers = await timersLeft();
  say({ stores: loads.map(({ caller }) => report(caller)), unhandled, timers });
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

/** How many timers keep the process alive, once the clients have had the time to end theirs. Waits without a timer. */
async function timersLeft(): Promise<number> {
  const end = performance.now() + LET_GO_MS;
  for (;;) {
    const timers = process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    if (timers === 0 || performance.now() > end) return timers;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

void main();
