import { type PostgresServer, startPostgres } from 'headgate-testbed/postgres-server';
import { sql } from 'kysely';
import type { TestProject } from 'vitest/node';
import { openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /**
     * The port of a server on 127.0.0.1, the address of its database `postgres`, and the name of a migrated, empty
     * database to copy.
     */
    postgres: { readonly port: number; readonly url: string; readonly migrated: string };
  }
}

const MIGRATED = 'migrated';

/** Each project loads this module for itself; they share the server through the one process that sets it up. */
const shared = globalThis as { communicationApiPostgres?: Promise<PostgresServer> | undefined };

/** Starts a real server once before any test, and stops it after the last. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const isFirst = shared.communicationApiPostgres === undefined;
  if (isFirst) process.stdout.write('Starting PostgreSQL …\n');
  shared.communicationApiPostgres ??= startWithTemplate();
  const server = await shared.communicationApiPostgres;
  project.provide('postgres', { port: server.port, url: server.url(), migrated: MIGRATED });
  if (!isFirst) return undefined;
  return async () => {
    shared.communicationApiPostgres = undefined;
    await server.stop();
  };
}

/** Starts a server, and migrates a database that tests copy: that takes much less time than the migrations. */
async function startWithTemplate(): Promise<PostgresServer> {
  const server = await startPostgres();
  try {
    const postgres = openServer(server.url(), () => undefined);
    await sql`create database ${sql.ref(MIGRATED)}`.execute(postgres);
    await postgres.destroy();
    const migrated = openServer(server.url(MIGRATED), () => undefined);
    await migrate(migrated);
    await migrated.destroy();
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}
