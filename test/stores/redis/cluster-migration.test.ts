/**
 * A slot moves from one master to another and back while it is in use. The clients follow MOVED and ASK, and no request
 * is counted twice or lost.
 */

import { accountOn, migrateSlot, type RedisCluster, startCluster, tell } from 'headgate-testbed/redis-cluster';
import { Caller, HEALTHY, type Load, startLoad, totals } from 'headgate-testbed/redis-load';
import { until } from 'headgate-testbed/redis-server';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLUSTER_CLIENTS, type ConnectedClient } from '../../support/redis-clients.ts';

const MAX = 150;
/** Long enough for checks to find a key that was not migrated yet. */
const CHECK_MS = 20;
const ROUTES = Array.from({ length: 20 }, (_, i) => `route ${i}`);
const windowSet = createWindowSet([], parseLimit([`${MAX}/1h`]));
/**
 * Errors that can degrade a decision here. After none of them was the script executed. TRYAGAIN: the records of a call
 * are on both masters, and node-redis does not try again. A closed connection: ioredis that fails fast sends nothing to
 * a master while it connects to it.
 */
const TOLERATED = /TRYAGAIN|Connection is closed|circuit breaker/;
const NAMES = Object.keys(CLUSTER_CLIENTS);

let cluster: RedisCluster;
let clients: ConnectedClient[];
beforeAll(async () => {
  cluster = await startCluster();
  clients = await Promise.all(Object.values(CLUSTER_CLIENTS).map((connect) => connect(cluster.ports)));
});
afterAll(async () => {
  for (const { disconnect } of clients) disconnect();
  await cluster.stop();
});

/** How often the servers have redirected a client. */
async function redirections(kind: 'ASK' | 'MOVED'): Promise<number> {
  let sum = 0;
  for (const port of cluster.ports) {
    const stats = String(await tell(port, 'INFO', 'errorstats'));
    sum += Number(new RegExp(`errorstat_${kind}:count=(\\d+)`).exec(stats)?.[1] ?? 0);
  }
  return sum;
}

it('S4, S5: while a slot is migrated there and back under load, each client accepts exactly max, and so do all clients with shared keys', async () => {
  const [from, to] = cluster.ports as [number, number];
  const here = await accountOn(cluster, from);
  const there = await accountOn(cluster, to);
  const errors: Error[] = [];
  const before = { ASK: await redirections('ASK'), MOVED: await redirections('MOVED') };
  const loads = new Map<string, Load[]>([['all', []], ...NAMES.map((name): [string, Load[]] => [name, []])]);
  for (const [i, { client }] of clients.entries()) {
    const callerOf = (prefix: string, account: string, onError?: (error: unknown) => void): Caller => {
      const options = { prefix, deadlineMs: 10_000, denyCacheMaxMs: 0, onError };
      return new Caller(createRedisStore(client, options), windowSet, account);
    };
    // A client of a cluster connects to a server when it sends the first command to it, which can fail.
    for (const { account } of [here, there]) {
      const warm = callerOf('warm', account);
      await until(async () => HEALTHY.includes(await warm.check()), `${NAMES[i]} is connected`);
    }
    for (const prefix of ['all', NAMES[i] as string]) {
      const caller = callerOf(prefix, here.account, (error) => errors.push(error as Error));
      loads.get(prefix)?.push(startLoad(caller, { inFlight: 4, pauseMs: 2, routes: ROUTES }));
    }
  }
  const callers = [...loads.values()].flat().map(({ caller }) => caller);
  const asked = (): boolean => callers.every(({ outcomes }) => outcomes.length > ROUTES.length);
  await until(asked, 'every route has been checked');
  await migrateSlot(cluster, here.slot, from, to, CHECK_MS);
  await migrateSlot(cluster, here.slot, to, from, CHECK_MS);
  const isFull = (): boolean =>
    callers.every(({ outcomes }) => outcomes.slice(-ROUTES.length).every((outcome) => outcome === 'rejected'));
  await until(isFull, 'every window is full', 90_000);
  await Promise.all([...loads.values()].flat().map((load) => load.stop()));

  expect(errors.filter(({ message }) => !TOLERATED.test(message))).toEqual([]);
  for (const { store } of callers) expect(store.stats()).toMatchObject({ timeouts: 0, breaker: 'closed' });
  for (const group of loads.values()) {
    const accepted = totals(group.map(({ caller }) => caller));
    expect([...accepted.values()]).toEqual(ROUTES.map(() => MAX));
  }
  expect(await redirections('ASK')).toBeGreaterThan(before.ASK);
  expect(await redirections('MOVED')).toBeGreaterThan(before.MOVED);
});
