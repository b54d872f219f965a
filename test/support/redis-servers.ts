import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** Ports of loopback: a single server, and the masters of a cluster. */
    redis: { readonly port: number; readonly clusterPorts: readonly number[] };
  }
}

const SLOTS = 16_384;
const MASTERS = 3;
/** A cluster's servers also listen 10,000 above their port. */
const HIGHEST_PORT = 55_000;

/** Starts real servers once before any test, and stops them after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const binary = findServer();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-redis-'));
  const servers: ChildProcess[] = [];
  const start = async (...options: string[]): Promise<number> => {
    const port = await freePort();
    const common = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
    servers.push(spawn(binary, [...common, ...options], { stdio: 'ignore' }));
    await answers(port);
    return port;
  };
  const stop = async (): Promise<void> => {
    for (const server of servers) server.kill('SIGKILL');
    await Promise.all(
      servers.map((server) => server.exitCode ?? new Promise((resolve) => server.once('exit', resolve))),
    );
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const port = await start();
    const clusterPorts = await Promise.all(
      Array.from({ length: MASTERS }, (_, i) =>
        start('--cluster-enabled', 'yes', '--cluster-config-file', `nodes-${i}.conf`, '--cluster-node-timeout', '1000'),
      ),
    );
    await joinCluster(clusterPorts);
    project.provide('redis', { port, clusterPorts });
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A server to run: named, on the PATH, or installed where this machine lets us. Never none: a test without its server is no test. */
function findServer(): string {
  const named = process.env.REDIS_SERVER_BIN;
  if (named !== undefined) return named;
  if (isOnPath('redis-server')) return 'redis-server';
  if (process.getuid?.() === 0 && isOnPath('apt-get')) {
    execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
    // Only the server: its package would start a service of its own.
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
    execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], {
      stdio: 'ignore',
      env,
    });
    if (isOnPath('redis-server')) return 'redis-server';
  }
  throw new Error('The tests need a Redis server: install redis-server, or name one in REDIS_SERVER_BIN.');
}

function isOnPath(command: string): boolean {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
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
    await Promise.all(
      nodes.map((node) => until(async () => String(await node.call('CLUSTER', 'INFO')).includes('cluster_state:ok'))),
    );
  } finally {
    for (const node of nodes) node.disconnect();
  }
}

async function answers(port: number): Promise<void> {
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on('error', () => {});
  try {
    await until(async () => (await client.ping()) === 'PONG');
  } finally {
    client.disconnect();
  }
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('a Redis server did not become ready within 20 s');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function freePort(): Promise<number> {
  for (;;) {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    await new Promise((resolve) => server.close(resolve));
    if (port < HIGHEST_PORT) return port;
  }
}
