import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildHasEnded } from 'headgate-testbed/build-result';
import { type PostgresServer, startPostgres } from 'headgate-testbed/postgres-server';
import { runBuild } from 'headgate-testbed/run-build';
import { sql } from 'kysely';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /**
     * The port of a server on 127.0.0.1, the address of its database `postgres`, and the name of a migrated, empty
     * database to copy, once the file `result` exists: see `built.ts`.
     */
    postgres: { readonly port: number; readonly url: string; readonly migrated: string; readonly result: string };
  }
}

const MIGRATED = 'migrated';

interface ServerWithTemplate {
  readonly server: PostgresServer;
  /** Of the folder with the file `result`. */
  readonly folder: string;
  readonly migrating: Promise<void>;
}

/** Each project loads this module for itself; they share the server through the one process that sets it up. */
const shared = globalThis as { communicationApiPostgres?: Promise<ServerWithTemplate> | undefined };

/** Starts a real server once before any test, and stops it after the last. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const isFirst = shared.communicationApiPostgres === undefined;
  if (isFirst) process.stdout.write('Starting PostgreSQL …\n');
  shared.communicationApiPostgres ??= startWithTemplate();
  const { server, folder, migrating } = await shared.communicationApiPostgres;
  project.provide('postgres', {
    ...{ port: server.port, url: server.url(), migrated: MIGRATED },
    result: join(folder, 'result'),
  });
  if (!isFirst) return undefined;
  return async () => {
    shared.communicationApiPostgres = undefined;
    await migrating;
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}

/**
 * Starts a server, and migrates a database that tests copy: that takes much less time than the migrations. They need the
 * built library, so tests of other projects run meanwhile.
 */
async function startWithTemplate(): Promise<ServerWithTemplate> {
  const server = await startPostgres();
  const folder = mkdtempSync(join(tmpdir(), 'communication-api-migrated-'));
  const migrating = migrateTemplate(server).then(
    () => writeFileSync(join(folder, 'result'), 'built'),
    (error: unknown) => {
      process.stderr.write(`The database to copy was not migrated: ${String(error)}\n`);
      writeFileSync(join(folder, 'result'), 'failed');
    },
  );
  return { server, folder, migrating };
}

async function migrateTemplate(server: PostgresServer): Promise<void> {
  await buildHasEnded(runBuild('dist/', 'scripts/build.mjs', '--if-changed').result);
  const [{ openServer }, { migrate }] = await Promise.all([
    import('../../src/db/database.ts'),
    import('../../src/db/migrate.ts'),
  ]);
  const postgres = openServer(server.url(), () => undefined);
  await sql`create database ${sql.ref(MIGRATED)}`.execute(postgres);
  await postgres.destroy();
  const migrated = openServer(server.url(MIGRATED), () => undefined);
  await migrate(migrated);
  await migrated.destroy();
}
