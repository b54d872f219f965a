import { startRedisServer } from './redis-server.mjs';
import { startRedisCluster } from './scale-out-cluster.mjs';

const MASTERS = 3;

/** How a store of the topic is started: its servers, each as `startRedisServer` gives it. */
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

/** Starts to count; the function that it returns tells what the servers did, in microseconds: `scriptMicros` in scripts, `cpuMicros` in all. */
export async function meterServers(servers) {
  for (const { admin } of servers) await admin.config('RESETSTAT');
  const before = await cpuOf(servers);
  return async () => {
    const cpuMicros = (await cpuOf(servers)) - before;
    const stats = await Promise.all(servers.map(scriptsOf));
    const sum = (field) => stats.reduce((total, stat) => total + stat[field], 0);
    return { calls: sum('calls'), scriptMicros: sum('micros'), cpuMicros };
  };
}

/** Bytes of a key with its record, by what the servers hold less without any; they hold none afterwards. */
export async function weighKeys(servers) {
  const keys = total(await Promise.all(servers.map(({ admin }) => admin.dbsize())));
  const full = await memoryOf(servers);
  await Promise.all(servers.map(({ admin }) => admin.flushall('SYNC')));
  return (full - (await memoryOf(servers))) / keys;
}

async function memoryOf(servers) {
  const used = servers.map(async ({ admin }) => Number(/used_memory:(\d+)/.exec(await admin.info('memory'))[1]));
  return total(await Promise.all(used));
}

async function scriptsOf({ admin }) {
  const [, calls, micros] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await admin.info('commandstats')) ?? [];
  return { calls: Number(calls ?? 0), micros: Number(micros ?? 0) };
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
