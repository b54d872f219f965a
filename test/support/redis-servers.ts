import type { TestProject } from 'vitest/node';
import { startCluster } from './redis-cluster.ts';
import { startRedis } from './redis-server.ts';
import { findValkey, startValkey } from './redis-valkey.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Ports on 127.0.0.1 of a single server, of the masters of a cluster, and of Valkey if it is installed. */
    redis: { readonly port: number; readonly clusterPorts: readonly number[]; readonly valkeyPort: number | undefined };
  }
}

/** Starts real servers once before all tests, and stops them after the last test. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stops: (() => Promise<void>)[] = [];
  const stopLater = <T extends { stop(): Promise<void> }>(server: T): T => {
    stops.push(() => server.stop());
    return server;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(stops.map((each) => each()));
  };
  try {
    const { port } = stopLater(await startRedis());
    const { ports: clusterPorts } = stopLater(await startCluster());
    const binary = findValkey();
    if (binary === undefined) {
      process.stdout.write(
        'Valkey is NOT tested: valkey-server is not on the PATH, and VALKEY_SERVER_BIN is not set.\n',
      );
    }
    const valkeyPort = binary === undefined ? undefined : stopLater(await startValkey(binary)).port;
    project.provide('redis', { port, clusterPorts, valkeyPort });
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}
