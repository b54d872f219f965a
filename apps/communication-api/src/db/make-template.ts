import { sql } from 'kysely';
import { openInMemory } from './embedded.ts';
import { migrate } from './migrate.ts';

/** A dump of an empty, migrated database. */
export async function makeTemplate(): Promise<Uint8Array> {
  const { db, dump } = await openInMemory();
  await migrate(db);
  // Nothing connects to this spare database, and it is a quarter of the files that a first start writes.
  await sql`update pg_database set datistemplate = false where datname = 'template0'`.execute(db);
  await sql`drop database template0`.execute(db);
  const template = await dump();
  await db.destroy();
  return template;
}
