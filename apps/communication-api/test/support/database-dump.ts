import { sql } from 'kysely';
import type { Database } from '../../src/db/database.ts';

/**
 * Passes each value of each row of a database to a function: bytes as they are, everything else as text.
 * @param onValue `place` is the table and the column
 */
export async function dumpDatabase(
  db: Database,
  onValue: (place: string, value: string | Uint8Array) => void,
): Promise<void> {
  const { rows: tables } = await sql<{ name: string }>`
    select case table_schema when current_schema() then '' else table_schema || '.' end || table_name as name
    from information_schema.tables
    where table_schema in (current_schema(), 'headgate') and table_type = 'BASE TABLE'`.execute(db);
  for (const { name } of tables) {
    const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(name)}`.execute(db);
    for (const row of rows)
      for (const [column, value] of Object.entries(row)) {
        if (value === null) continue;
        const isText = typeof value === 'string' || value instanceof Uint8Array;
        onValue(`${name}.${column}`, isText ? value : JSON.stringify(value));
      }
  }
}
