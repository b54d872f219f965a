import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { findOrInstall, isOnPath } from './find-program.ts';

/** The servers of a cluster also listen on their port plus this number. */
const BUS = 10_000;
/** Both ports must be below 32,768: systems assign ports from there on themselves. */
const LOWEST_PORT = 12_000;
const PORTS = 9_000;
const ATTEMPTS = 5;

/** One real server for a test, which may damage it. */
export interface RedisServer {
  readonly port: number;
  /** Stops the process, while its connections stay open (SIGSTOP). */
  freeze(): void;
  /** Continues the process (SIGCONT). */
  thaw(): void;
  /** Kills the process (SIGKILL). Its data is lost. */
  kill(): Promise<void>;
  /** Starts the server again on the same port, without data. */
  restart(): Promise<void>;
  /** Kills the process and removes its files. */
  stop(): Promise<void>;
}

/** Starts a Redis server without persistence on a free port of 127.0.0.1. Waits until it responds. */
export function startRedis(...options: string[]): Promise<RedisServer> {
  return startServer(findServer(), ({ port, folder }) => [
    ...['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder],
    ...options,
  ]);
}

/** The port of a server, and the folder for its files. */
export interface Place {
  readonly port: number;
  readonly folder: string;
}

/** Starts any server that uses the Redis protocol. */
export async function startServer(binary: string, argumentsOf: (place: Place) => string[]): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startAt(await freePort(), binary, argumentsOf);
    } catch (error) {
      // Another process may take the port meanwhile.
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
    await responds(port, process);
  };
  const kill = async (): Promise<void> => {
    if (hasEnded()) return;
    const exited = new Promise((resolve) => process.once('exit', resolve));
    process.kill('SIGKILL');
    await exited;
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

/** Polls until `condition` is true. An error of `condition` is thrown. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 60_000,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    if (await condition()) return;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * The Redis server to run: REDIS_SERVER_BIN, the one on the PATH, or one that is installed now, if this process may do
 * so.
 * @throws Error if no server is found: tests that need a server must not be left out silently
 */
export function findServer(): string {
  return (
    process.env.REDIS_SERVER_BIN ??
    findOrInstall(
      () => (isOnPath('redis-server') ? 'redis-server' : undefined),
      'redis-server',
      'The tests need a Redis server: install redis-server, or set REDIS_SERVER_BIN.',
    )
  );
}

/** Waits until this process, and not another process, responds on the port. */
async function responds(port: number, process: ChildProcess): Promise<void> {
  let failure: Error | undefined;
  process.once('error', (error) => {
    failure = error;
  });
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: 0 });
  client.on('error', () => {});
  const isThisProcess = async (): Promise<boolean> => {
    if (failure !== undefined) throw failure;
    if (process.exitCode !== null) throw new Error(`the server for port ${port} ended with ${process.exitCode}`);
    const info = await client.info('server').catch(() => '');
    return info.includes(`process_id:${process.pid}\r`);
  };
  try {
    await until(isThisProcess, `the server on port ${port} responds`);
  } finally {
    client.disconnect();
  }
}

/** A free port that the system does not assign by itself. The port of the cluster bus above it is free too. */
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
