import { scriptStats, startRedisServer } from 'headgate-bench/redis-server';
import { startRedisCluster } from './scale-out-cluster.mjs';

const MASTERS = 3;

/** By name, a function that starts the store; `servers` are results of `startRedisServer`. */
export const STORES = {
  'one Redis': async () => {
    const server = await startRedisServer();
    return { servers: [server], isCluster: false, url: `redis://127.0.0.1:${server.port}`, stop: () => server.stop() };
  },
  'cluster of 3': async () => {
    const { servers, stop } = await startRedisCluster(MASTERS);
    const nodes = servers.map(({ port }) => `127.0.0.1:${port}`);
    return { servers, isCluster: true, url: `redis-cluster://${nodes.join(',')}`, stop };
  },
};

/**
 * Starts to count.
 * @returns a function that resolves to what the servers did since: `calls` of scripts, `scriptMicros` in scripts,
 *   `cpuMicros` in all
 */
export async function meterServers(servers) {
  for (const { admin } of servers) await admin.config('RESETSTAT');
  const before = await cpuOf(servers);
  return async () => {
    const cpuMicros = (await cpuOf(servers)) - before;
    const stats = await Promise.all(servers.map(({ admin }) => scriptStats(admin)));
    const sum = (field) => stats.reduce((total, stat) => total + stat[field], 0);
    return { calls: sum('calls'), scriptMicros: sum('micros'), cpuMicros };
  };
}

/**
 * Bytes per key with its record: the memory that the servers free when they delete all keys. Afterwards they are empty.
 */
export async function measureBytesPerKey(servers) {
  const keys = total(await Promise.all(servers.map(({ admin }) => admin.dbsize())));
  const full = await memoryOf(servers);
  await Promise.all(servers.map(({ admin }) => admin.flushall('SYNC')));
  return (full - (await memoryOf(servers))) / keys;
}

async function memoryOf(servers) {
  const used = servers.map(async ({ admin }) => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))[1]));
  return total(await Promise.all(used));
}

async function cpuOf(servers) {
  const seconds = await Promise.all(
    servers.map(async ({ admin }) => {
      const info = await admin.info('cpu');
      return Number(/used_cpu_user:([\d.]+)/.exec(info)[1]) + Number(/used_cpu_sys:([\d.]+)/.exec(info)[1]);
    }),
  );
  return total(seconds) * 1e6;
}

const total = (values) => values.reduce((sum, value) => sum + value, 0);
