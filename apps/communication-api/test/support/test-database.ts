import { randomBytes } from 'node:crypto';
import { postgresUrl } from 'headgate-testbed/postgres-server';
import pg from 'pg';
import { inject } from 'vitest';

export interface TestDatabase {
  readonly url: string;
  /** Drops the database, and cuts the connections to it. */
  drop(): Promise<void>;
}

/**
 * Creates a database for one test file.
 * @param template the database to copy, to which there may be no connection; by default an empty database
 * @param port the server, by default the server that all tests share
 */
export async function createTestDatabase(
  template = 'template1',
  port = inject('postgres').port,
): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  await run(port, `CREATE DATABASE ${name} TEMPLATE ${pg.escapeIdentifier(template)}`);
  return {
    url: postgresUrl(port, name),
    drop: () => run(port, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function run(port: number, statement: string): Promise<void> {
  const client = new pg.Client(postgresUrl(port));
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
