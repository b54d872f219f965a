import { existsSync, readFileSync } from 'node:fs';
import { type Database, openServer } from '../../src/db/database.ts';
import { openInMemory } from '../../src/db/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { createTestDatabase } from './test-database.ts';

export type DatabaseKind = 'pglite' | 'postgres';

/** The database of tests that run on one: `DB`, else PGlite. */
export const DEFAULT_DATABASE: DatabaseKind = process.env.DB === 'postgres' ? 'postgres' : 'pglite';

/** The databases of tests that run on each: `describe.each(DATABASES)('accounts on %s', …)`. `DB` chooses one. */
export const DATABASES: readonly DatabaseKind[] =
  process.env.DB === undefined ? ['pglite', 'postgres'] : [DEFAULT_DATABASE];

const TEMPLATE = new URL('../../dist/template.tar.gz', import.meta.url);

/** A migrated, empty database for one test file. */
export interface OpenTestDatabase {
  readonly db: Database;
  /** The server's database; undefined for PGlite, which is in memory. */
  readonly url: string | undefined;
  /** Closes the database and drops it. */
  close(): Promise<void>;
}

/** Opens a new database, which the caller closes. */
export async function openTestDatabase(kind: DatabaseKind = DEFAULT_DATABASE): Promise<OpenTestDatabase> {
  if (kind === 'pglite') {
    const { db } = await openInMemory(existsSync(TEMPLATE) ? readFileSync(TEMPLATE) : undefined);
    await migrate(db);
    return { db, url: undefined, close: () => db.destroy() };
  }
  const { url, drop } = await createTestDatabase();
  const db = openServer(url, () => undefined);
  await migrate(db);
  const close = async (): Promise<void> => {
    await db.destroy();
    await drop();
  };
  return { db, url, close };
}
