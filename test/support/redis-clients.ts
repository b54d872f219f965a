import { once } from 'node:events';
import { Cluster, Redis } from 'ioredis';
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5';
import { createClient, createCluster } from 'redis';
import { createClient as createClient5, createCluster as createCluster5 } from 'redis-5';
import type { RedisClient } from '../../src/stores/redis/client.ts';

/** A connected client, and the function that disconnects it. */
export interface ConnectedClient {
  readonly client: RedisClient;
  disconnect(): void;
}

export type Connect<Where> = (where: Where) => Promise<ConnectedClient>;

/** Commands are neither queued nor sent twice, as `docs/redis.md` advises. */
const FAST = { enableOfflineQueue: false, maxRetriesPerRequest: 0, autoResendUnfulfilledCommands: false };
const FAST_CLUSTER = {
  redisOptions: FAST,
  enableOfflineQueue: false,
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
};

/** Connects to a port of 127.0.0.1. Errors of the connection are not logged: the store handles them. */
export const CLIENTS: Record<string, Connect<number>> = {
  'ioredis by default': (port) => ofIoredis(new Redis({ port, host: '127.0.0.1' })),
  'ioredis that fails fast': (port) => ofIoredis(new Redis({ port, host: '127.0.0.1', ...FAST })),
  'node-redis by default': (port) => ofNodeRedis(createClient({ url: urlOf(port) })),
  'node-redis that fails fast': (port) => ofNodeRedis(createClient({ url: urlOf(port), disableOfflineQueue: true })),
};

/** Connects to a cluster whose servers listen on these ports of 127.0.0.1. */
export const CLUSTER_CLIENTS: Record<string, Connect<readonly number[]>> = {
  'ioredis Cluster by default': (ports) => ofIoredis(new Cluster(ports.map(nodeOf))),
  'ioredis Cluster that fails fast': (ports) => ofIoredis(new Cluster(ports.map(nodeOf), FAST_CLUSTER)),
  'node-redis cluster by default': (ports) => ofNodeRedis(createCluster({ rootNodes: ports.map(rootOf) })),
  'node-redis cluster that fails fast': (ports) =>
    ofNodeRedis(
      createCluster({
        rootNodes: ports.map(rootOf),
        defaults: { disableOfflineQueue: true },
        topologyRefreshOnReconnectionAttemptStrategy: 500,
      }),
    ),
};

/** The previous major versions. */
export const CLIENTS_5: Record<string, Connect<number>> = {
  'ioredis 5': (port) => ofIoredis(new Redis5({ port, host: '127.0.0.1' })),
  'node-redis 5': (port) => ofNodeRedis(createClient5({ url: urlOf(port) })),
};

export const CLUSTER_CLIENTS_5: Record<string, Connect<readonly number[]>> = {
  'ioredis 5 Cluster': (ports) => ofIoredis(new Cluster5(ports.map(nodeOf))),
  'node-redis 5 cluster': (ports) => ofNodeRedis(createCluster5({ rootNodes: ports.map(rootOf) })),
};

const urlOf = (port: number): string => `redis://127.0.0.1:${port}`;
const nodeOf = (port: number) => ({ host: '127.0.0.1', port });
const rootOf = (port: number) => ({ url: urlOf(port) });

interface IoredisLike {
  readonly status: string;
  on(event: string, listener: () => void): unknown;
  once(event: string, listener: () => void): unknown;
  disconnect(): void;
}

export async function ofIoredis<C extends IoredisLike & RedisClient>(client: C): Promise<ConnectedClient> {
  client.on('error', () => {});
  if (client.status !== 'ready') await once(client as unknown as NodeJS.EventEmitter, 'ready');
  return { client, disconnect: () => client.disconnect() };
}

interface NodeRedisLike {
  on(event: string, listener: () => void): unknown;
  connect(): Promise<unknown>;
  destroy(): void;
}

export async function ofNodeRedis(client: NodeRedisLike): Promise<ConnectedClient> {
  client.on('error', () => {});
  await client.connect();
  return { client: client as unknown as RedisClient, disconnect: () => client.destroy() };
}
