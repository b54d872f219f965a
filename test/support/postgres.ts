import { PGlite } from '@electric-sql/pglite';
import { afterFile } from 'headgate-testbed/after-file';
import type {} from 'headgate-testbed/postgres-for-run';
import pg from 'pg';
import postgres from 'postgres';
import { inject } from 'vitest';
import { databaseOf, type PostgresClient } from '../../src/stores/postgres/client.ts';
import { migrate } from '../../src/stores/postgres/schema.ts';

/** The address of the server that all test files share. */
export const sharedUrl = (): string => inject('postgres').url;

/** A pool of pg that ends after the test file. */
export function newPool(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool(
    options.connectionString === undefined ? { ...options, connectionString: sharedUrl() } : options,
  );
  // Without a listener, a server that ends would end this process.
  pool.on('error', () => undefined);
  afterFile(() => pool.end());
  return pool;
}

/** A start takes seconds of a processor, so the files of this process share one. Each file has schemas of its own. */
let pglite: PGlite | undefined;

/** Makes clients of each supported package. All but PGlite use the shared server, and end after the test file. */
export const CLIENTS: Readonly<Record<string, () => PostgresClient>> = {
  pg: newPool,
  'postgres.js': () => {
    const sql = postgres(sharedUrl(), { onnotice: () => undefined });
    afterFile(() => sql.end());
    return sql;
  },
  PGlite: () => {
    pglite ??= new PGlite();
    return pglite;
  },
};

/** Creates an empty schema of headgate's tables. */
export async function migrated<Client extends PostgresClient>(client: Client, schema: string): Promise<Client> {
  await databaseOf('client', client).query(`drop schema if exists "${schema}" cascade`, []);
  await migrate(client, { schema });
  return client;
}
