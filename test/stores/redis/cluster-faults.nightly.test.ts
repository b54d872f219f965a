/**
 * Servers of a cluster that change roles under load: every check is answered in time, and the stores recover by
 * themselves (S17).
 */

import { patient } from 'headgate-testbed/patience';
import { accountOn, type RedisCluster, startCluster, tell } from 'headgate-testbed/redis-cluster';
import { Caller, HEALTHY, type Load, startLoad, totals } from 'headgate-testbed/redis-load';
import { until } from 'headgate-testbed/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseLimit } from '../../../src/core/limit.ts';
import { createWindowSet } from '../../../src/core/window-set.ts';
import { createRedisStore } from '../../../src/stores/redis/limits.ts';
import { CLUSTER_CLIENTS, type ConnectedClient } from '../../support/redis-clients.ts';

const DEADLINE_MS = 250;
const SLACK_MS = patient(1_000);
const MAX = 1_000;
const NAMES = Object.keys(CLUSTER_CLIENTS);
const windowSet = createWindowSet([], parseLimit([`${MAX}/1h`, `${MAX * 2}/1d`]));

let cluster: RedisCluster;
let place: { account: string; slot: number };
let clients: ConnectedClient[];
beforeAll(async () => {
  cluster = await startCluster({ masters: 3, replicas: 1 });
  place = await accountOn(cluster, cluster.ports[0] as number);
  clients = await Promise.all(Object.values(CLUSTER_CLIENTS).map((connect) => connect(cluster.ports)));
});
afterAll(async () => {
  for (const { disconnect } of clients) disconnect();
  await cluster.stop();
});

/** Waits until a master that is not affected says that this server has the slot. */
async function becomesOwner(port: number): Promise<void> {
  const witness = cluster.ports[1] as number;
  await until(async () => (await cluster.ownerOf(place.slot, witness)) === port, `${port} owns the slot`);
}

const [first, , , replica] = [0, 1, 2, 3] as const;
const FAULTS = [
  {
    // Master and replica agree on the moment of the change, so no count is lost.
    name: 'a replica promoted (CLUSTER FAILOVER)',
    lives: 1,
    async happen() {
      const port = cluster.ports[replica] as number;
      await tell(port, 'CLUSTER', 'FAILOVER');
      await becomesOwner(port);
    },
  },
  {
    // Counts that the dead master had not replicated yet are lost, so the new one can accept as many again.
    name: 'a master killed (SIGKILL) and its replica elected',
    lives: 2,
    async happen() {
      // The first fault has exchanged the roles of master and replica.
      await (cluster.replicas[0] as RedisCluster['replicas'][number]).kill();
      await becomesOwner(cluster.ports[first] as number);
    },
  },
];

describe.each(FAULTS)('$name', ({ name, lives, happen }) => {
  /** One store per client. All of them check the same account during the fault. */
  let loads: Load[];
  const of = (client: string): Caller => (loads[NAMES.indexOf(client)] as Load).caller;

  beforeAll(async () => {
    loads = await Promise.all(
      clients.map(async ({ client }) => {
        const store = createRedisStore(client, {
          prefix: `fault-${lives}`,
          deadlineMs: DEADLINE_MS,
          denyCacheMaxMs: 0,
        });
        const caller = new Caller(store, windowSet, place.account);
        // A client of a cluster connects to a server when it sends the first command to it.
        await until(async () => HEALTHY.includes(await caller.check('warm')), `${name}: decides`);
        caller.longestMs = 0;
        return startLoad(caller, { inFlight: 2, pauseMs: 10 });
      }),
    );
    await happen();
  });
  afterAll(() => Promise.all(loads.map((load) => load.stop())));

  it.each(NAMES)('%s: decides again by itself', async (client) => {
    const { outcomes } = of(client);
    await until(() => outcomes.slice(-5).every((outcome) => HEALTHY.includes(outcome)), 'decides again', 15_000);
    await until(() => of(client).store.stats().breaker === 'closed', 'the circuit breaker is closed');
  });

  it.each(NAMES)('%s: every check is answered in time, and with `local` none throws', (client) => {
    const caller = of(client);
    expect(caller.longestMs).toBeLessThan(DEADLINE_MS + SLACK_MS);
    expect(caller.count('store_timeout', 'store_unavailable')).toBe(0);
    expect(caller.count('degraded-accepted')).toBeLessThanOrEqual(MAX);
  });

  it(`S4: Redis accepts at most ${lives} × ${MAX}, and each process ${MAX} more`, async () => {
    const exhausted = (): boolean =>
      loads.every(({ caller }) => caller.outcomes.slice(-5).every((o) => o === 'rejected'));
    await until(exhausted, 'the window is full');
    const callers = loads.map(({ caller }) => caller);
    const accepted = [...totals(callers)].filter(([instance]) => /^route .* 3600000 /.test(instance));
    const byRedis = accepted.reduce((sum, [, count]) => sum + count, 0);
    expect(accepted.length).toBeLessThanOrEqual(lives);
    expect(byRedis).toBeGreaterThan(0);
    expect(byRedis).toBeLessThanOrEqual(lives * MAX);
    const all = callers.reduce((sum, caller) => sum + caller.count('accepted', 'degraded-accepted'), 0);
    expect(all).toBeLessThanOrEqual(lives * MAX + callers.length * MAX);
  });
});
