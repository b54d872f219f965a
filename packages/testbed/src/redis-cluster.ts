import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type RedisServer, startRedis, until } from './redis-server.ts';

const SLOTS = 16_384;
/** Keys that are moved together. */
const KEYS_PER_MOVE = 10;
const MEET_AGAIN_MS = 5_000;
const OPTIONS = ['--cluster-enabled', 'yes', '--repl-diskless-sync-delay', '0', '--cluster-node-timeout'];
/**
 * A replica takes over soon. Without replicas, a server that a busy machine does not run for seconds is not given up.
 */
const NODE_TIMEOUT_MS = { withReplicas: '1000', without: '15000' };

/** A cluster for one test, which may damage it. */
export interface RedisCluster {
  readonly masters: readonly RedisServer[];
  /** Copies of the first master. */
  readonly replicas: readonly RedisServer[];
  readonly ports: readonly number[];
  /** The port of the master of a slot, according to the server at `seenFrom`. Undefined during a failover. */
  ownerOf(slot: number, seenFrom: number): Promise<number | undefined>;
  stop(): Promise<void>;
}

/** Starts masters that share the slots, and replicas of the first master. Waits until all of them know each other. */
export async function startCluster({ masters = 3, replicas = 0 } = {}): Promise<RedisCluster> {
  const servers: RedisServer[] = [];
  const start = async (): Promise<RedisServer> => {
    const server = await startRedis(...OPTIONS, NODE_TIMEOUT_MS[replicas > 0 ? 'withReplicas' : 'without']);
    servers.push(server);
    return server;
  };
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    await Promise.all(Array.from({ length: masters + replicas }, start));
    const ports = servers.map(({ port }) => port);
    await join(ports, masters);
    for (const replica of ports.slice(masters)) await follow(replica, ports[0] as number);
    return { masters: servers.slice(0, masters), replicas: servers.slice(masters), ports, ownerOf, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Sends one command to the server on a port of 127.0.0.1. */
export async function tell(port: number, command: string, ...args: (string | number)[]): Promise<unknown> {
  const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: 0 });
  client.on('error', () => {});
  try {
    return await client.call(command, ...args);
  } finally {
    client.disconnect();
  }
}

async function join(ports: readonly number[], masters: number): Promise<void> {
  const share = Math.ceil(SLOTS / masters);
  const meet = (port: number) => tell(port, 'CLUSTER', 'MEET', '127.0.0.1', ports[0] as number);
  for (const [i, port] of ports.entries()) {
    if (i < masters) await tell(port, 'CLUSTER', 'ADDSLOTSRANGE', i * share, Math.min(SLOTS, (i + 1) * share) - 1);
    await meet(port);
  }
  const isJoined = async (port: number): Promise<boolean> => {
    const info = String(await tell(port, 'CLUSTER', 'INFO'));
    return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${ports.length}\r`);
  };
  // A server gives a handshake up after the node time-out, which a loaded machine can exceed.
  const again = setInterval(() => void Promise.allSettled(ports.map(meet)), MEET_AGAIN_MS);
  try {
    await Promise.all(ports.map((port) => until(() => isJoined(port), 'the cluster is up')));
  } finally {
    clearInterval(again);
  }
}

/** Makes a server the replica of a master, and waits until it is in step and can be elected. */
async function follow(replica: number, master: number): Promise<void> {
  await tell(replica, 'CLUSTER', 'REPLICATE', await idOf(master));
  const isCopied = async (): Promise<boolean> =>
    String(await tell(replica, 'INFO', 'replication')).includes('master_link_status:up');
  await until(isCopied, 'the replica has a copy');
  const isKnown = async (): Promise<boolean> =>
    String(await tell(master, 'CLUSTER', 'REPLICAS', await idOf(master))).includes(`:${replica}@`);
  await until(isKnown, 'the replica is known');
}

export async function idOf(port: number): Promise<string> {
  return String(await tell(port, 'CLUSTER', 'MYID'));
}

async function ownerOf(slot: number, seenFrom: number): Promise<number | undefined> {
  const ranges = (await tell(seenFrom, 'CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
  return ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
}

/** An account whose records belong to `port`, and their slot. */
export async function accountOn(cluster: RedisCluster, port: number): Promise<{ account: string; slot: number }> {
  for (let i = 0; ; i++) {
    const slot = Number(await tell(port, 'CLUSTER', 'KEYSLOT', `{acc_${i}}`));
    if ((await cluster.ownerOf(slot, port)) === port) return { account: `acc_${i}`, slot };
  }
}

/**
 * Moves a slot group of keys by group of keys, as `redis-cli --cluster reshard` does. Meanwhile each master stores some
 * of the keys.
 * @param pauseMs after each group
 */
export async function migrateSlot(
  { ports }: Pick<RedisCluster, 'ports'>,
  slot: number,
  from: number,
  to: number,
  pauseMs = 0,
): Promise<void> {
  await tell(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', await idOf(from));
  await tell(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', await idOf(to));
  for (;;) {
    const keys = (await tell(from, 'CLUSTER', 'GETKEYSINSLOT', slot, KEYS_PER_MOVE)) as string[];
    if (keys.length === 0) break;
    await tell(from, 'MIGRATE', '127.0.0.1', to, '', 0, 5_000, 'KEYS', ...keys);
    await sleep(pauseMs);
  }
  for (const port of [to, from, ...ports]) await tell(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', await idOf(to));
}
