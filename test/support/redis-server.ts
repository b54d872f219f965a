import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** A cluster's servers also listen this far above their port. */
const BUS = 10_000;
/** Both below those that systems give out by themselves, which start at 32,768. */
const LOWEST_PORT = 12_000;
const PORTS = 9_000;
const ATTEMPTS = 5;

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

/** Starts a Redis server on a free port of loopback that keeps nothing on disk; it answers when this resolves. */
export function startRedis(...options: string[]): Promise<RedisServer> {
  return startServer(findServer(), ({ port, folder }) => [
    ...['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder],
    ...options,
  ]);
}

/** Where a server listens, and what it may write to. */
export interface Place {
  readonly port: number;
  readonly folder: string;
}

/** Starts any server that speaks Redis' protocol. */
export async function startServer(binary: string, argumentsOf: (place: Place) => string[]): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startAt(await freePort(), binary, argumentsOf);
    } catch (error) {
      // Its port may have been taken in between.
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

async function startAt(port: number, binary: string, argumentsOf: (place: Place) => string[]): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-redis-'));
  const args = argumentsOf({ port, folder });
  let process: ChildProcess;
  const hasEnded = (): boolean => process.exitCode !== null || process.signalCode !== null;
  const start = async (): Promise<void> => {
    process = spawn(binary, args, { stdio: 'ignore' });
    await answers(port, process);
  };
  const kill = async (): Promise<void> => {
    if (hasEnded()) return;
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
export function findServer(): string {
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

export function isOnPath(command: string): boolean {
  try {
    execFileSync(command, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Waits until this very process answers on the port. */
async function answers(port: number, process: ChildProcess): Promise<void> {
  let failure: Error | undefined;
  process.once('error', (error) => {
    failure = error;
  });
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: 0 });
  client.on('error', () => {});
  const isIt = async (): Promise<boolean> => {
    if (failure !== undefined) throw failure;
    if (process.exitCode !== null) throw new Error(`the server for port ${port} ended with ${process.exitCode}`);
    const info = await client.info('server').catch(() => '');
    return info.includes(`process_id:${process.pid}\r`);
  };
  try {
    await until(isIt, `the server on port ${port} answers`);
  } finally {
    client.disconnect();
  }
}

/** A port that nothing holds, and that the system gives to nobody by itself; likewise the one of a cluster's bus above it. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST_PORT + Math.floor(Math.random() * PORTS);
    if ((await isFree(port)) && (await isFree(port + BUS))) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
