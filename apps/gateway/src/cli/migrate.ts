import type { Config } from '../config/schema.ts';
import { parseStore } from '../config/store-url.ts';
import { createPostgresPool } from '../store/postgres-pool.ts';
import { checkSchemas, migrateSchemas, schemaSql, schemasOf } from '../store/postgres-schemas.ts';
import type { Terminal } from './terminal.ts';

/** A later version may rewrite large tables. */
const SILENCE_MS = 600_000;
const CHECK_MS = 5_000;

/**
 * Creates or updates the schema of the store, or prints the SQL that creates it.
 * @throws StoreSetupError, or the error of the connection
 */
export async function migrateStore(config: Config, isPrinted: boolean, terminal: Terminal): Promise<number> {
  const store = parseStore(config.store);
  if (store?.kind !== 'postgres') {
    terminal.error('headgate: nothing to migrate: only a store in PostgreSQL has a schema\n');
    return 0;
  }
  if (isPrinted) {
    terminal.out(schemaSql(store));
    return 0;
  }
  const pool = createPostgresPool({ ...store, maxConnections: 2 }, () => {}, { silenceMs: SILENCE_MS });
  try {
    await migrateSchemas(pool, store);
    await checkSchemas(pool, store, CHECK_MS);
    terminal.out(`the schemas ${schemasOf(store).join(' and ')} are up to date\n`);
    return 0;
  } finally {
    await pool.end();
  }
}
