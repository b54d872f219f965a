import type { ProvidedContext } from 'vitest';
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

interface Servers {
  readonly ports: ProvidedContext['redis'];
  stop(): Promise<void>;
}

/** Each project loads this module for itself; they share the servers through the one process that sets them up. */
const shared = globalThis as { headgateRedis?: Promise<Servers> | undefined };

/** Starts real servers once before any test, and stops them after the last. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const isFirst = shared.headgateRedis === undefined;
  shared.headgateRedis ??= startServers();
  const { ports, stop } = await shared.headgateRedis;
  project.provide('redis', ports);
  if (!isFirst) return undefined;
  return async () => {
    shared.headgateRedis = undefined;
    await stop();
  };
}

async function startServers(): Promise<Servers> {
  const stops: (() => Promise<void>)[] = [];
  const stopLater = <T extends { stop(): Promise<void> }>(server: T): T => {
    stops.push(() => server.stop());
    return server;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(stops.map((each) => each()));
  };
  try {
    process.stdout.write('Starting Redis: a server and a cluster …\n');
    const { port } = stopLater(await startRedis());
    const { ports: clusterPorts } = stopLater(await startCluster());
    const binary = findValkey();
    if (binary === undefined) {
      process.stdout.write(
        'Valkey is NOT tested: valkey-server is not on the PATH, and VALKEY_SERVER_BIN is not set.\n',
      );
    }
    const valkeyPort = binary === undefined ? undefined : stopLater(await startValkey(binary)).port;
    return { ports: { port, clusterPorts, valkeyPort }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
