/** A scan of claims goes on while slots move between masters, and while a replica takes the place of a master. */

import { migrateSlot, type RedisCluster, startCluster, tell } from 'headgate-testbed/redis-cluster';
import { until } from 'headgate-testbed/redis-server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedisClaimStore, type RedisClaimStore } from '../../../src/stores/redis/claims.ts';
import { claimKey } from '../../../src/stores/redis/keys.ts';
import { slotOf } from '../../../src/stores/redis/server-of.ts';
import { CLUSTER_CLIENTS, type ConnectedClient } from '../../support/redis-clients.ts';

const NAMES = ['ioredis Cluster that fails fast', 'node-redis cluster by default'] as const;
const PREFIX = 'moved';
const KEYS = Array.from({ length: 300 }, (_, i) => `k${1_000 + i}`);
const slotOfKey = (key: string): number => slotOf(claimKey(PREFIX, 'app', key));

let cluster: RedisCluster;
const clients = new Map<string, ConnectedClient>();
beforeAll(async () => {
  cluster = await startCluster({ masters: 3, replicas: 1 });
  for (const name of NAMES) {
    const connected = await CLUSTER_CLIENTS[name]?.(cluster.ports.slice(0, 3));
    if (connected !== undefined) clients.set(name, connected);
  }
  const store = storeOf(NAMES[0]);
  const begin = { token: 't', fingerprint: 'f', leaseMs: 1, retentionMs: 600_000, onOrphan: 'reject', dispatch: false };
  // The first commands for a master can fail, because the client connects with them.
  for (const key of KEYS)
    await until(
      () =>
        store.begin({ scope: 'app', key }, begin as Parameters<RedisClaimStore['begin']>[1]).then(
          () => true,
          () => false,
        ),
      key,
    );
});
afterAll(async () => {
  for (const { disconnect } of clients.values()) disconnect();
  await cluster.stop();
});

const storeOf = (name: string): RedisClaimStore => {
  const { client } = clients.get(name) as ConnectedClient;
  return createRedisClaimStore(client, { prefix: PREFIX, deadlineMs: 10_000, logger: false });
};

/** Scans page by page. `onPage` gets the number of the page. */
async function scan(name: string, onPage: (page: number, cursor: string) => Promise<void>): Promise<string[]> {
  const store = storeOf(name);
  const found = new Set<string>();
  let cursor: string | undefined;
  for (let page = 1; page < 400; page++) {
    const { claims, next } = await store.list(cursor, 20);
    for (const { key } of claims) found.add(key);
    if (next === undefined) return [...found].sort();
    cursor = next;
    await onPage(page, cursor);
  }
  throw new Error('the scan does not end');
}

describe.each(NAMES)('%s', (name) => {
  it('finds every claim while slots move between all masters', async () => {
    const moves: number[] = [];
    const found = await scan(name, async (page) => {
      if (page > 8) return;
      const slot = slotOfKey(KEYS[(page * 37) % KEYS.length] as string);
      const [first, second, third] = cluster.ports as [number, number, number];
      const from = (await cluster.ownerOf(slot, first)) as number;
      // To the first master from the others, and from the first to the others.
      const to = from === first ? (page % 2 === 0 ? second : third) : first;
      await migrateSlot({ ports: cluster.ports.slice(0, 3) }, slot, from, to);
      moves.push(slot);
    });
    expect(found).toEqual(KEYS);
    expect(moves.length).toBe(8);
  });

  it('finds every claim although a slot is half moved and stays so', async () => {
    const slot = slotOfKey(KEYS[7] as string);
    const from = (await cluster.ownerOf(slot, cluster.ports[0] as number)) as number;
    const to = cluster.ports.slice(0, 3).find((port) => port !== from) as number;
    const [idFrom, idTo] = (await Promise.all([from, to].map((port) => tell(port, 'CLUSTER', 'MYID')))) as string[];
    const found = await scan(name, async (page) => {
      if (page !== 2) return;
      await tell(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', idFrom as string);
      await tell(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', idTo as string);
      const [key] = (await tell(from, 'CLUSTER', 'GETKEYSINSLOT', slot, 1)) as string[];
      await tell(from, 'MIGRATE', '127.0.0.1', to, key as string, 0, 5_000);
    });
    expect(found).toEqual(KEYS);
    await migrateSlot({ ports: cluster.ports.slice(0, 3) }, slot, from, to);
  });
});

describe('a failover', () => {
  const isMaster = async (port: number): Promise<boolean> => String(await tell(port, 'ROLE')).startsWith('master');

  it.each(NAMES)('of the server that is being scanned: no error, and no claim is missed: %s', async (name) => {
    const [first, replica] = [cluster.ports[0], cluster.ports[3]] as [number, number];
    const [from, promoted] = (await isMaster(first)) ? [first, replica] : [replica, first];
    let pagesBefore = 0;
    const found = await scan(name, async (_page, cursor) => {
      if (!cursor.includes(`:${from}/`) || ++pagesBefore !== 2) return;
      await until(async () => {
        // Without a copy of the data it refuses, or does nothing.
        await tell(promoted, 'CLUSTER', 'FAILOVER').catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 200));
        return isMaster(promoted);
      }, 'the replica is the master');
    });
    expect(found).toEqual(KEYS);
    expect(pagesBefore).toBeGreaterThanOrEqual(2);
  });
});
