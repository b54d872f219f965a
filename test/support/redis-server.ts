import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** A cluster's servers also listen 10,000 above their port. */
const HIGHEST_PORT = 55_000;

/** One real server, to be treated badly. */
export interface RedisServer {
  readonly port: number;
  /** Stops it answering while its connections stay (SIGSTOP), and lets it go on. */
  freeze(): void;
  thaw(): void;
  /** Ends it without a farewell (SIGKILL), its data lost. */
  kill(): Promise<void>;
  /** Starts it again on its port, empty. */
  restart(): Promise<void>;
  /** Ends it and removes what it wrote. */
  stop(): Promise<void>;
}

/** Starts a server on a free port of loopback that keeps nothing on disk; it answers when this resolves. */
export async function startRedis(...options: string[]): Promise<RedisServer> {
  const binary = findServer();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-redis-'));
  const port = await freePort();
  const common = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
  let process: ChildProcess;
  const start = async (): Promise<void> => {
    process = spawn(binary, [...common, ...options], { stdio: 'ignore' });
    await answers(port);
  };
  const kill = async (): Promise<void> => {
    if (process.exitCode !== null || process.signalCode !== null) return;
    const gone = new Promise((resolve) => process.once('exit', resolve));
    process.kill('SIGKILL');
    await gone;
  };
  const stop = async (): Promise<void> => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    port,
    freeze: () => void process.kill('SIGSTOP'),
    thaw: () => void process.kill('SIGCONT'),
    kill,
    restart: start,
    stop,
  };
}

/** Waits until `condition` holds; an error of it counts as "not yet". */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    if (await condition()) return;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
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

async function answers(port: number): Promise<void> {
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on('error', () => {});
  try {
    await until(async () => (await client.ping()) === 'PONG', `the Redis server on port ${port} answers`);
  } finally {
    client.disconnect();
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
