import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tell } from './redis-cluster.ts';
import { findServer, type RedisServer, startRedis, startServer, until } from './redis-server.ts';

export const SENTINEL_NAME = 'headgate';

/** Starts a replica of a master, and waits until it received all the data. */
export async function startReplica(master: number, ...options: string[]): Promise<RedisServer> {
  const replica = await startRedis('--replicaof', `127.0.0.1 ${master}`, ...options);
  const isCopied = async (): Promise<boolean> =>
    String(await tell(replica.port, 'INFO', 'replication')).includes('master_link_status:up');
  await until(isCopied, 'the replica has a copy');
  return replica;
}

/** Starts a sentinel, which replaces a failed master by a replica. Waits until it knows this number of replicas. */
export async function startSentinel(master: number, replicas = 1): Promise<RedisServer> {
  const sentinel = await startServer(findServer(), ({ port, folder }) => {
    // Sentinel writes its state to this file.
    const file = join(folder, 'sentinel.conf');
    const watch = [
      `sentinel monitor ${SENTINEL_NAME} 127.0.0.1 ${master} 1`,
      `sentinel down-after-milliseconds ${SENTINEL_NAME} 500`,
      `sentinel failover-timeout ${SENTINEL_NAME} 3000`,
    ];
    writeFileSync(file, `${[`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, ...watch].join('\n')}\n`);
    return [file, '--sentinel'];
  });
  const known = async (): Promise<boolean> =>
    ((await tell(sentinel.port, 'SENTINEL', 'REPLICAS', SENTINEL_NAME)) as unknown[]).length === replicas;
  await until(known, 'the sentinel knows the replicas');
  return sentinel;
}

/** The port of the master, according to a sentinel. */
export async function masterOf(sentinel: RedisServer): Promise<number> {
  const [, port] = (await tell(sentinel.port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', SENTINEL_NAME)) as string[];
  return Number(port);
}
