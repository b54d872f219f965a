import { spawn } from 'node:child_process';
import { chownSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findOrInstall, foldersOnPath } from './find-program.ts';
import { killWithChildren, startGuard } from './guard.ts';
import { freePort, until } from './redis-server.ts';
import { serverUser } from './server-user.ts';

/** A pooler in transaction mode: two statements of a client can run on different connections of the server. */
export interface PgBouncer {
  /** The address of a database through the pooler. */
  url(database?: string): string;
  stop(): Promise<void>;
}

/**
 * Starts PgBouncer in front of a PostgreSQL server.
 * @param poolSize most connections to the server
 */
export async function startPgBouncer(postgresPort: number, poolSize = 5): Promise<PgBouncer> {
  const program = findPgBouncer();
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pgbouncer-'));
  const owner = serverUser();
  const port = await freePort();
  const config = join(folder, 'pgbouncer.ini');
  writeFileSync(
    config,
    `[databases]
* = user=postgres host=127.0.0.1 port=${postgresPort}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
`,
  );
  if (owner !== undefined) for (const path of [folder, config]) chownSync(path, owner.uid, owner.gid);
  const guard = startGuard(folder);
  const log = openSync(join(folder, 'log'), 'w');
  const child = spawn(program, [config], { cwd: folder, stdio: ['ignore', log, log], detached: true, ...owner });
  closeSync(log);
  guard.watch(child);
  child.unref();
  const stop = async (): Promise<void> => {
    await killWithChildren(child);
    await guard.end();
  };
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`PgBouncer ended: ${readFileSync(join(folder, 'log'), 'utf8')}`);
      return accepts(port);
    }, 'PgBouncer accepts connections');
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`, stop };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** @throws Error if none is found: tests that need the program must not be left out silently */
function findPgBouncer(): string {
  const named = process.env.PGBOUNCER_BIN;
  if (named !== undefined) return named;
  return findOrInstall(
    () => [...foldersOnPath(), '/usr/sbin'].map((folder) => join(folder, 'pgbouncer')).find((file) => existsSync(file)),
    'pgbouncer',
    'The tests need PgBouncer: install pgbouncer, or set PGBOUNCER_BIN.',
  );
}
