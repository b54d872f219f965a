import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';

const ANSWER_MS = 10_000;

/**
 * Starts a Redis server for the benchmark, on a free loopback port and without persistence.
 * @param more more options of the server
 * @returns `admin`: a connection apart from the measured ones; `port`, `pid`, `version` and `stop()`
 */
export async function startRedisServer(more = [], at = freePort()) {
  const port = await at;
  const options = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...more].map(String);
  const child = spawn(process.env.REDIS_SERVER_BIN ?? 'redis-server', options, { stdio: 'ignore' });
  // Only this process uses the server, so it ends with this process.
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', () =>
      reject(new Error('no Redis server found: install redis-server, or set REDIS_SERVER_BIN to its path')),
    );
  });
  const admin = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, maxRetriesPerRequest: null });
  admin.on('error', () => {});
  const silent = wait(ANSWER_MS, true, { ref: false });
  if ((await Promise.race([admin.ping(), silent])) === true)
    throw new Error(`redis-server on port ${port}: no answer within ${ANSWER_MS} ms`);
  return {
    port,
    pid: child.pid,
    admin,
    version: field(await admin.info('server'), 'redis_version'),
    stop() {
      admin.disconnect();
      process.off('exit', kill);
      kill();
    },
  };
}

/** Calls of scripts since the last RESETSTAT, and their server time in microseconds. */
export async function scriptStats(admin) {
  const [, calls, micros] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await admin.info('commandstats')) ?? [];
  return { calls: Number(calls ?? 0), micros: Number(micros ?? 0) };
}

/** Resets the server's counts. The returned function resolves to the {@link scriptStats} since then. */
export async function meterScripts(admin) {
  await admin.config('RESETSTAT');
  return () => scriptStats(admin);
}

/** Commands of the admin connection, and of a client that connects: they are not part of the measurement. */
const NOT_MEASURED = new Set(['info', 'config', 'ping', 'flushall', 'hello', 'client', 'select', 'script']);

/** Like {@link meterScripts}, for all commands. If there are scripts, their commands count as part of the scripts. */
export async function meterCommands(admin) {
  await admin.config('RESETSTAT');
  return async () => {
    const lines = (await admin.info('commandstats')).matchAll(/^cmdstat_(\w+)[^:]*:calls=(\d+),usec=(\d+)/gm);
    const stats = [...lines].map(([, name, calls, micros]) => ({ name, calls: Number(calls), micros: Number(micros) }));
    const scripts = stats.filter(({ name }) => name.startsWith('eval'));
    const counted = scripts.length > 0 ? scripts : stats.filter(({ name }) => !NOT_MEASURED.has(name));
    const sum = (field) => counted.reduce((total, stat) => total + stat[field], 0);
    return { calls: sum('calls'), micros: sum('micros') };
  };
}

function field(info, name) {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? 'unknown';
}

/** @param wanted a port number, or 0 for any free port. Rejects with `EADDRINUSE` if the port is in use. */
export async function freePort(wanted = 0) {
  const server = createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(wanted, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
