import pg from 'pg';
import { afterAll, inject } from 'vitest';
import { migrate } from '../../src/index.ts';

/** A pool of the shared server, and an empty schema of the store's tables in it. It ends after the test file. */
export async function migratedPool(schema: string, options: pg.PoolConfig = {}): Promise<pg.Pool> {
  const pool = newPool(inject('postgresStore').url, options);
  await migrate(pool, { schema });
  return pool;
}

/** A pool that ends after the test file. */
export function newPool(url: string, options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, ...options });
  // Without a listener, a server that ends would end this process.
  pool.on('error', () => undefined);
  afterAll(() => pool.end());
  return pool;
}

/** How many rows a query returns as `count`. */
export async function countOf(pool: pg.Pool, table: string): Promise<number> {
  const { rows } = await pool.query<{ count: string }>(`select count(*) from ${table}`);
  return Number(rows[0]?.count);
}
