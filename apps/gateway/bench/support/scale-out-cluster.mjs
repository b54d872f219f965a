import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort, startRedisServer } from 'headgate-bench/redis-server';

const SLOTS = 16_384;
/**
 * A cluster's servers also listen at their port plus this. Both ports stay below those that systems assign by
 * themselves.
 */
const BUS_OFFSET = 10_000;
const LOWEST_PORT = 12_000;
const PORTS = 9_000;
const JOINED_WITHIN_MS = 20_000;

/** Starts masters that share the slots, without replicas. `servers` are results of `startRedisServer`. */
export async function startRedisCluster(masters) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  const servers = [];
  const stop = () => {
    for (const server of servers) server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (let i = 0; i < masters; i++) {
      const options = ['--cluster-enabled', 'yes', '--cluster-config-file', `nodes-${i}.conf`, '--dir', folder];
      servers.push(await startRedisServer(options, portWithBus()));
    }
    const share = Math.ceil(SLOTS / masters);
    for (const [i, { admin }] of servers.entries()) {
      await admin.cluster('ADDSLOTSRANGE', i * share, Math.min(SLOTS, (i + 1) * share) - 1);
      await admin.cluster('MEET', '127.0.0.1', servers[0].port);
    }
    await Promise.all(servers.map(({ admin }) => joined(admin, masters)));
    return { servers, stop };
  } catch (error) {
    stop();
    throw error;
  }
}

async function joined(admin, masters) {
  const end = performance.now() + JOINED_WITHIN_MS;
  for (;;) {
    const info = await admin.cluster('INFO');
    if (info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${masters}\r`)) return;
    if (performance.now() > end)
      throw new Error(`the ${masters} masters of the cluster did not find each other within ${JOINED_WITHIN_MS} ms`);
    await wait(20);
  }
}

async function portWithBus() {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORTS);
    try {
      await freePort(port + BUS_OFFSET);
      return await freePort(port);
    } catch (error) {
      if (error.code !== 'EADDRINUSE') throw error;
    }
  }
}
