import { afterAll } from 'vitest';
import { type PostgresServer, startPostgres } from './postgres-server.ts';

/** Starts a PostgreSQL server for the tests of a file. Await it at the top of the file. */
export async function postgresForFile(...options: string[]): Promise<PostgresServer> {
  const server = await startPostgres(...options);
  afterAll(() => server.stop());
  return server;
}
