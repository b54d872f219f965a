import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tell } from './redis-cluster.ts';
import { findServer, type RedisServer, startRedis, startServer, until } from './redis-server.ts';

export const SENTINEL_NAME = 'headgate';

/** A server that keeps a copy of a master's data; it has all of it when this resolves. */
export async function startReplica(master: number, ...options: string[]): Promise<RedisServer> {
  const replica = await startRedis('--replicaof', `127.0.0.1 ${master}`, ...options);
  const isCopied = async (): Promise<boolean> =>
    String(await tell(replica.port, 'INFO', 'replication')).includes('master_link_status:up');
  await until(isCopied, 'the replica has a copy');
  return replica;
}

/** Watches a master and puts a replica in its place; it knows of `replicas` of them when this resolves. */
export async function startSentinel(master: number, replicas = 1): Promise<RedisServer> {
  const sentinel = await startServer(findServer(), ({ port, folder }) => {
    // Sentinel writes down there what it learns.
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

/** The port of the master as a sentinel knows it. */
export async function masterOf(sentinel: RedisServer): Promise<number> {
  const [, port] = (await tell(sentinel.port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', SENTINEL_NAME)) as string[];
  return Number(port);
}
