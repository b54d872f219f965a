import { readdirSync } from 'node:fs';
import { type Migration, Migrator, sql } from 'kysely';
import type { Database } from '../../src/db/database.ts';

const FOLDER = new URL('../../src/db/migrations/', import.meta.url);

/**
 * Brings an empty database to the schema of an older version of the service. @param last the newest migration of that
 * version
 */
export async function migrateTo(db: Database, last: string): Promise<void> {
  const names = readdirSync(FOLDER).map((file) => file.replace('.ts', ''));
  const migrations: Record<string, Migration> = {};
  for (const name of names) migrations[name] = (await import(new URL(`${name}.ts`, FOLDER).href)) as Migration;
  const migrator = new Migrator({
    db,
    provider: { getMigrations: async () => migrations },
    migrationTableName: 'migrations',
    migrationLockTableName: 'migrations_lock',
  });
  const { error } = await migrator.migrateTo(last);
  if (error !== undefined) throw error;
}

/** The rows of a table, as JSON, in the order of their text. */
export type Rows = Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

/** The tables of the service with their columns. */
export async function columnsOf(db: Database): Promise<Readonly<Record<string, readonly string[]>>> {
  const tables = await db.introspection.getTables();
  const own = tables.filter(({ name, schema }) => schema === 'public' && !name.startsWith('migrations'));
  return Object.fromEntries(own.map(({ name, columns }) => [name, columns.map((column) => column.name)]));
}

/** Every row of every table, or only of some columns. */
export async function readRows(db: Database, columns: Readonly<Record<string, readonly string[]>>): Promise<Rows> {
  const all: Record<string, readonly Readonly<Record<string, unknown>>[]> = {};
  for (const [table, names] of Object.entries(columns)) {
    const { rows } = await sql<{ row: Readonly<Record<string, unknown>> }>`
      select to_jsonb(t) as row from (select ${sql.join(names.map((name) => sql.ref(name)))} from ${sql.table(table)}) t
      order by 1`.execute(db);
    all[table] = rows.map(({ row }) => row);
  }
  return all;
}

/** Writes rows into an older schema. Values without a table or column in that schema are left out. */
export async function writeRows(db: Database, rows: Rows): Promise<void> {
  const columns = await columnsOf(db);
  await db.transaction().execute(async (transaction) => {
    // Tables refer to each other.
    await sql`set local session_replication_role = replica`.execute(transaction);
    for (const [table, names] of Object.entries(columns)) {
      const [first] = rows[table] ?? [];
      if (first === undefined) continue;
      const both = sql.join(names.filter((name) => name in first).map((name) => sql.ref(name)));
      await sql`insert into ${sql.table(table)} (${both}) overriding system value
        select ${both} from jsonb_populate_recordset(null::${sql.table(table)}, ${JSON.stringify(rows[table])}::jsonb)
        on conflict do nothing`.execute(transaction);
      for (const name of names)
        await sql`select setval(sequence, (select max(${sql.ref(name)}::text::bigint) from ${sql.table(table)}))
          from pg_get_serial_sequence(${table}, ${name}) as sequence where sequence is not null`.execute(transaction);
    }
  });
}
