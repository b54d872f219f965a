import { existsSync, readFileSync } from 'node:fs';
import { inject } from 'vitest';
import { type Database, openServer } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { overPglite } from '../../src/db/pglite.ts';
import { openPglite } from './reused-pglite.ts';
import { createTestDatabase } from './test-database.ts';

export type DatabaseKind = 'PGlite' | 'PostgreSQL';

/** The database of tests that run on one: PostgreSQL with `DB=postgres`, else PGlite. */
export const DEFAULT_DATABASE: DatabaseKind = process.env.DB === 'postgres' ? 'PostgreSQL' : 'PGlite';

const KINDS: readonly DatabaseKind[] = process.env.DB === undefined ? ['PGlite', 'PostgreSQL'] : [DEFAULT_DATABASE];

/** For tests that run on each database: `describe.each(DATABASES)('accounts on %s', (_, open) => …)`. `DB` chooses one. */
export const DATABASES: readonly (readonly [kind: DatabaseKind, open: () => Promise<OpenDatabase>])[] = KINDS.map(
  (kind) => [kind, () => openTestDatabase(kind)],
);

const TEMPLATE = new URL('../../dist/template.tar.gz', import.meta.url);

/** A migrated, empty database for one test file. */
export interface OpenDatabase {
  readonly db: Database;
  /** The database of the server; undefined for PGlite, which is in memory. */
  readonly url: string | undefined;
  /** Closes the database and drops it. */
  close(): Promise<void>;
}

/** Opens a new database, which the caller closes. */
export async function openTestDatabase(kind: DatabaseKind = DEFAULT_DATABASE): Promise<OpenDatabase> {
  if (kind === 'PGlite') {
    const pglite = await openPglite(existsSync(TEMPLATE) ? readFileSync(TEMPLATE) : undefined);
    const db = overPglite(pglite);
    await migrate(db);
    return { db, url: undefined, close: () => db.destroy() };
  }
  const { url, drop } = await createTestDatabase(inject('postgres').migrated);
  const db = openServer(url, () => undefined);
  const close = async (): Promise<void> => {
    await db.destroy();
    await drop();
  };
  return { db, url, close };
}
