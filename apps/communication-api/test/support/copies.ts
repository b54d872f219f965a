import { sql } from 'kysely';
import type { Database } from '../../src/db/database.ts';

/**
 * Copies a row, for lists that are longer than a page. The copies get older ids.
 * @param changes the SQL of an object with the values that differ; `n` is the number of the copy
 */
export async function copyRow(
  db: Database,
  table: 'accounts' | 'sends',
  id: string,
  count: number,
  changes = sql`'{}'::jsonb`,
): Promise<void> {
  const copyId = sql`${id.slice(0, 4)}::text || lpad(n::text, 26, '0')`;
  await sql`insert into ${sql.table(table)}
    select (jsonb_populate_record(original, jsonb_build_object('id', ${copyId}) || ${changes})).*
    from ${sql.table(table)} as original, generate_series(1, ${count}::integer) as n
    where original.id = ${id}`.execute(db);
}
