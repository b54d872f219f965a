import { Redis } from 'ioredis';
import type { TestProject } from 'vitest/node';
import { type RedisServer, startRedis, until } from './redis-server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Ports of loopback: a single server, and the masters of a cluster. */
    redis: { readonly port: number; readonly clusterPorts: readonly number[] };
  }
}

const SLOTS = 16_384;
const MASTERS = 3;

/** Starts real servers once before any test, and stops them after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers: RedisServer[] = [];
  const start = async (...options: string[]): Promise<number> => {
    const server = await startRedis(...options);
    servers.push(server);
    return server.port;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    const port = await start();
    const clusterPorts = await Promise.all(
      Array.from({ length: MASTERS }, () => start('--cluster-enabled', 'yes', '--cluster-node-timeout', '1000')),
    );
    await joinCluster(clusterPorts);
    project.provide('redis', { port, clusterPorts });
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

async function joinCluster(ports: readonly number[]): Promise<void> {
  const nodes = ports.map((port) => new Redis({ port, host: '127.0.0.1' }));
  const share = Math.ceil(SLOTS / nodes.length);
  try {
    for (const [i, node] of nodes.entries()) {
      await node.call('CLUSTER', 'ADDSLOTSRANGE', i * share, Math.min(SLOTS, (i + 1) * share) - 1);
      await node.call('CLUSTER', 'MEET', '127.0.0.1', ports[0] as number);
    }
    const isJoined = async (node: Redis): Promise<boolean> =>
      String(await node.call('CLUSTER', 'INFO')).includes('cluster_state:ok');
    await Promise.all(nodes.map((node) => until(() => isJoined(node), 'the cluster is up')));
  } finally {
    for (const node of nodes) node.disconnect();
  }
}
