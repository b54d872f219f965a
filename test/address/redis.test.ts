import { afterAll, beforeAll, describe, inject } from 'vitest';
import { createRedisStore, type RedisStore } from '../../src/stores/redis/limits.ts';
import { addressCases } from '../support/address-cases.ts';
import { CLIENTS, CLUSTER_CLIENTS, type ConnectedClient } from '../support/redis-clients.ts';

const { port, clusterPorts } = inject('redis');

describe.each<[string, () => Promise<ConnectedClient> | undefined]>([
  ['Redis', () => CLIENTS['ioredis by default']?.(port)],
  ['Redis Cluster', () => CLUSTER_CLIENTS['ioredis Cluster by default']?.(clusterPorts)],
])('limits by address, in %s', (name, connect) => {
  let connected: ConnectedClient;
  const stores: RedisStore[] = [];
  beforeAll(async () => {
    connected = (await connect()) as ConnectedClient;
  });
  afterAll(async () => {
    for (const store of stores) await store.close?.();
    connected.disconnect();
  });

  addressCases(() => {
    const prefix = `address-${process.pid}-${name}-${stores.length}`;
    const store = createRedisStore(connected.client, { prefix, deadlineMs: 10_000 });
    stores.push(store);
    return store;
  });
});
