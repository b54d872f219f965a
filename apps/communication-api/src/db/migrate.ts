import { type Migration, Migrator } from 'kysely';
import type { Database } from './database.ts';
import * as first from './migrations/0001-first.ts';

/** In the order in which they run. A migration that was released is never changed: the next one changes its result. */
const MIGRATIONS: Readonly<Record<string, Migration>> = { '0001-first': first };

/**
 * Brings the schema up to date. Processes that start at the same time wait for each other.
 * @returns the names of the migrations that ran
 */
export async function migrate(db: Database): Promise<readonly string[]> {
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => ({ ...MIGRATIONS }) },
    migrationTableName: 'migrations',
    migrationLockTableName: 'migrations_lock',
  });
  const { error, results = [] } = await migrator.migrateToLatest();
  if (error !== undefined) throw error;
  return results.map(({ migrationName }) => migrationName);
}
