import { execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from './redis-server.mjs';

const START_MS = 15_000;
const DEBIAN_VERSIONS = '/usr/lib/postgresql';

/**
 * Starts a PostgreSQL server for the benchmark, on a free loopback port. It has the settings of a new server: what is
 * committed is on the disk.
 * @returns `url`, `pid`, `version` and `stop()`
 */
export async function startPostgresServer() {
  const programs = programsFolder();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-postgres-'));
  const owner = serverUser();
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  const data = join(folder, 'data');
  const run = { cwd: folder, stdio: 'ignore', ...owner };
  execFileSync(join(programs, 'initdb'), ['-D', data, '-U', 'postgres', '--auth=trust', '--no-sync'], run);
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`];
  const args = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
  const child = spawn(join(programs, 'postgres'), args, run);
  // The files are removed at once, so the server need not write what is in its memory.
  const kill = () => child.kill('SIGQUIT');
  process.once('exit', kill);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  return {
    url,
    pid: child.pid,
    version: await versionWithin(url, START_MS),
    async stop() {
      process.off('exit', kill);
      const exit = new Promise((resolve) => child.once('exit', resolve));
      kill();
      await exit;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** @returns the address of a new, empty database on the server */
export async function newDatabase(server, name) {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Waits until the server accepts connections. */
async function versionWithin(url, ms) {
  const deadline = performance.now() + ms;
  for (;;) {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query('show server_version');
      return rows[0].server_version.split(' ')[0];
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await wait(50);
    } finally {
      await client.end().catch(() => {});
    }
  }
}

/** POSTGRES_BIN_DIR, the newest of Debian's folders, or a folder of PATH. */
function programsFolder() {
  const versions = existsSync(DEBIAN_VERSIONS) ? readdirSync(DEBIAN_VERSIONS) : [];
  const folders = [
    ...versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(DEBIAN_VERSIONS, version, 'bin')),
    ...(process.env.PATH ?? '').split(':'),
  ];
  const isUsable = (folder) => ['postgres', 'initdb'].every((program) => existsSync(join(folder, program)));
  const found = process.env.POSTGRES_BIN_DIR ?? folders.find(isUsable);
  if (found === undefined) throw new Error('no PostgreSQL found: install postgresql, or set POSTGRES_BIN_DIR');
  return found;
}

/** PostgreSQL refuses to run as root. */
function serverUser() {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (option) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}
