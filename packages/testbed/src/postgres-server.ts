import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findOrInstall, foldersOnPath } from './find-program.ts';
import { type Guard, killWithChildren, signalChildren, startGuard } from './guard.ts';
import { freePort, until } from './redis-server.ts';
import { type Owner, serverUser } from './server-user.ts';

const OLDEST_VERSION = 15;
const DEBIAN_VERSIONS = '/usr/lib/postgresql';
const ATTEMPTS = 5;

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  max_connections: '200',
  // Without fsync, only a crash of the machine loses data. `synchronous_commit` stays on, or `kill` would lose commits.
  fsync: 'off',
  full_page_writes: 'off',
  timezone: 'UTC',
};

/** The locale of PGlite, so that both databases sort and fold text in the same way. */
const LOCALE = ['--locale=C', `--lc-ctype=${process.platform === 'darwin' ? 'UTF-8' : 'C.UTF-8'}`, '--encoding=UTF8'];

/** One real server for a test, which may damage it. The user `postgres` needs no password. */
export interface PostgresServer {
  readonly port: number;
  /** The address of a database of this server, by default of `postgres`. */
  url(database?: string): string;
  /** Stops all processes of the server, while its connections stay open (SIGSTOP). */
  freeze(): void;
  /** Continues all processes of the server (SIGCONT). */
  thaw(): void;
  /** Kills all processes of the server, as a crash does. Everything that was committed is kept. */
  kill(): Promise<void>;
  /** Starts a killed server again on the same port, with its data. */
  restart(): Promise<void>;
  /** Kills the server and removes its files. */
  stop(): Promise<void>;
}

/** The address of a database on a port of 127.0.0.1. */
export function postgresUrl(port: number, database = 'postgres'): string {
  return `postgres://postgres@127.0.0.1:${port}/${database}`;
}

/**
 * Starts a PostgreSQL server with a new data directory on a free port of 127.0.0.1. Waits until it accepts connections.
 * The server ends with this process, even if this process is killed.
 * @param options arguments of `postgres`, such as `-c`, `max_connections=10`
 */
export async function startPostgres(...options: string[]): Promise<PostgresServer> {
  const binaries = findPostgres();
  // PostgreSQL refuses to run as root.
  const owner = serverUser();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-postgres-'));
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  const guard = startGuard(folder);
  const place = { binaries, folder, owner, guard, options };
  try {
    await createData(place);
    for (let attempt = 1; ; attempt++) {
      try {
        return await startAt(await freePort(), place);
      } catch (error) {
        // Another process may take the port meanwhile.
        if (attempt === ATTEMPTS) throw error;
      }
    }
  } catch (error) {
    await guard.end();
    throw error;
  }
}

interface Place {
  /** The folder of `initdb` and `postgres`. */
  readonly binaries: string;
  /** The folder for the files of the server. */
  readonly folder: string;
  readonly owner: Owner | undefined;
  readonly guard: Guard;
  readonly options: readonly string[];
}

async function createData({ binaries, folder, owner, guard }: Place): Promise<void> {
  const args = ['-D', join(folder, 'data'), '-U', 'postgres', '--auth=trust', '--no-sync', '--no-instructions'];
  const creation = promisify(execFile)(join(binaries, 'initdb'), [...args, ...LOCALE], { cwd: folder, ...owner });
  guard.watch(creation.child);
  await creation;
}

async function startAt(port: number, { binaries, folder, owner, guard, options }: Place): Promise<PostgresServer> {
  const data = join(folder, 'data');
  const settings = Object.entries({ ...SETTINGS, unix_socket_directories: folder });
  const args = ['-D', data, '-p', String(port), ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  let server: ChildProcess;
  const start = async (): Promise<void> => {
    const log = openSync(join(folder, 'log'), 'w');
    // A separate process group, so that Ctrl+C does not end the server before the tests.
    const spawned = { cwd: folder, stdio: ['ignore' as const, log, log], detached: true, ...owner };
    server = spawn(join(binaries, 'postgres'), [...args, ...options], spawned);
    closeSync(log);
    guard.watch(server);
    server.unref();
    await accepts(server, folder);
  };
  const freeze = (): void => {
    // First the parent, so that it starts no other process meanwhile.
    server.kill('SIGSTOP');
    signalChildren(server, 'SIGSTOP');
  };
  const thaw = (): void => {
    signalChildren(server, 'SIGCONT');
    server.kill('SIGCONT');
  };
  const kill = async (): Promise<void> => killWithChildren(server);
  const restart = async (): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await start();
      } catch (error) {
        // The port may not be free yet.
        if (attempt === ATTEMPTS) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
  const stop = async (): Promise<void> => {
    await kill();
    await guard.end();
  };
  try {
    await start();
  } catch (error) {
    await kill();
    throw error;
  }
  return { port, url: (database) => postgresUrl(port, database), freeze, thaw, kill, restart, stop };
}

/** Waits until this process accepts connections, and not another process on the same port. */
async function accepts(server: ChildProcess, folder: string): Promise<void> {
  let failure: Error | undefined;
  server.once('error', (error) => {
    failure = error;
  });
  const isReady = (): boolean => {
    if (failure !== undefined) throw failure;
    if (server.exitCode !== null) {
      throw new Error(`PostgreSQL ended with ${server.exitCode}: ${readFileSync(join(folder, 'log'), 'utf8')}`);
    }
    // The first line is the process, the eighth its state.
    const file = join(folder, 'data', 'postmaster.pid');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    return lines[0] === String(server.pid) && lines[7]?.trim() === 'ready';
  };
  await until(isReady, 'PostgreSQL accepts connections');
}

/**
 * The folder of the PostgreSQL programs to run: POSTGRES_BIN_DIR, the one on the PATH, the newest of Debian's folders,
 * or one that is installed now, if this process may do so.
 * @throws Error if none is found: tests that need a server must not be left out silently
 */
export function findPostgres(): string {
  const named = process.env.POSTGRES_BIN_DIR;
  if (named !== undefined) {
    if (isUsable(named)) return named;
    throw new Error(`POSTGRES_BIN_DIR: no postgres ${OLDEST_VERSION} or newer with initdb in ${named}`);
  }
  return findOrInstall(
    () => [...foldersOnPath(), ...debianFolders()].find(isUsable),
    'postgresql',
    `The tests need PostgreSQL ${OLDEST_VERSION} or newer: install postgresql, or set POSTGRES_BIN_DIR.`,
  );
}

function debianFolders(): string[] {
  const versions = existsSync(DEBIAN_VERSIONS) ? readdirSync(DEBIAN_VERSIONS) : [];
  return versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(DEBIAN_VERSIONS, version, 'bin'));
}

function isUsable(folder: string): boolean {
  const postgres = join(folder, 'postgres');
  if (!existsSync(postgres) || !existsSync(join(folder, 'initdb'))) return false;
  const version = execFileSync(postgres, ['--version'], { encoding: 'utf8' });
  return Number(/\(PostgreSQL\) (\d+)/.exec(version)?.[1]) >= OLDEST_VERSION;
}
