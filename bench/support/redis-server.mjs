import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';

const ANSWER_MS = 10_000;

/**
 * A server of the benchmark's own on a free port of loopback, that keeps nothing on disk; `admin` is a connection beside the measured ones.
 * @param more options of the server
 */
export async function startRedisServer(more = [], at = freePort()) {
  const port = await at;
  const options = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...more].map(String);
  const child = spawn(process.env.REDIS_SERVER_BIN ?? 'redis-server', options, { stdio: 'ignore' });
  // Ours alone, and worth nothing without us.
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', () =>
      reject(new Error('the benchmark needs a Redis server: install redis-server, or name one in REDIS_SERVER_BIN')),
    );
  });
  const admin = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, maxRetriesPerRequest: null });
  admin.on('error', () => {});
  const silent = wait(ANSWER_MS, true, { ref: false });
  if ((await Promise.race([admin.ping(), silent])) === true) throw new Error(`no answer from port ${port}`);
  return {
    port,
    admin,
    version: field(await admin.info('server'), 'redis_version'),
    stop() {
      admin.disconnect();
      process.off('exit', kill);
      kill();
    },
  };
}

/** Starts to count anew what scripts cost; the function that it returns tells it, in microseconds of the server. */
export async function meterScripts(admin) {
  await admin.config('RESETSTAT');
  return async () => {
    const [, calls, micros] = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await admin.info('commandstats')) ?? [];
    return { calls: Number(calls ?? 0), micros: Number(micros ?? 0) };
  };
}

/** Of this connection's own, and of a client's greeting: no part of what is measured. */
const BESIDE = new Set(['info', 'config', 'ping', 'flushall', 'hello', 'client', 'select', 'script']);

/** As {@link meterScripts}, of whatever commands are used; those inside a script are the script's. */
export async function meterCommands(admin) {
  await admin.config('RESETSTAT');
  return async () => {
    const lines = (await admin.info('commandstats')).matchAll(/^cmdstat_(\w+)[^:]*:calls=(\d+),usec=(\d+)/gm);
    const stats = [...lines].map(([, name, calls, micros]) => ({ name, calls: Number(calls), micros: Number(micros) }));
    const scripts = stats.filter(({ name }) => name.startsWith('eval'));
    const counted = scripts.length > 0 ? scripts : stats.filter(({ name }) => !BESIDE.has(name));
    const sum = (field) => counted.reduce((total, stat) => total + stat[field], 0);
    return { calls: sum('calls'), micros: sum('micros') };
  };
}

function field(info, name) {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1] ?? 'unknown';
}

/** @param wanted 0 takes any */
export async function freePort(wanted = 0) {
  const server = createServer();
  await new Promise((resolve, reject) => server.once('error', reject).listen(wanted, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
