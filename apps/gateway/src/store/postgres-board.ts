import type { Pool } from 'pg';
import type { BoardStorage, StoredCandidate } from './fleet-board.ts';

/** Name of the candidate's row. The names of the other rows are JSON texts, which begin with a quote. */
const CANDIDATE = 'candidate';

/**
 * The table of the gateway itself, beside the tables of the library in the same schema. The version in its name lets a
 * later gateway use another table while older ones still run.
 * @param schema as it stands in a statement
 */
export function boardSql(schema: string): string {
  return `
-- Data that gateways exchange: the details of each process, and the candidate of shadow limits. A row without an end
-- does not expire.
create table if not exists ${schema}.gateway_board_1 (
  name text primary key,
  id text not null,
  text text not null,
  expires_at timestamptz
);
`;
}

/**
 * The storage of a fleet board in PostgreSQL.
 * @param schema as it stands in a statement
 */
export function postgresBoard(pool: Pool, schema: string): BoardStorage {
  const table = `${schema}.gateway_board_1`;
  const insert = `insert into ${table} (name, id, text, expires_at) values ($1, $2, $3,
    clock_timestamp() + $4::bigint * interval '1 millisecond')
    on conflict (name) do update set id = excluded.id, text = excluded.text, expires_at = excluded.expires_at`;
  return {
    // Also removes the rows of processes that are gone, as far as no other process removes them now.
    writeDetails: (name, details, keptMs) =>
      pool.query(
        `with gone as (delete from ${table} where name in (
          select name from ${table} where expires_at < clock_timestamp() and name <> $1 for update skip locked))
        ${insert}`,
        [JSON.stringify(name), '', details, String(keptMs)],
      ),
    async detailsOf(names) {
      // JSON in JSON: a name may contain what no text of PostgreSQL can contain.
      const wanted = JSON.stringify(names.map((name) => JSON.stringify(name)));
      const { rows } = await pool.query<{ name: string; text: string }>(
        `select name, text from ${table} where name in (select jsonb_array_elements_text($1::text::jsonb))
          and expires_at >= clock_timestamp()`,
        [wanted],
      );
      const found = new Map(rows.map(({ name, text }) => [name, text]));
      return names.map((name) => found.get(JSON.stringify(name)) ?? null);
    },
    async candidateId() {
      const { rows } = await pool.query<{ id: string }>(`select id from ${table} where name = $1`, [CANDIDATE]);
      return rows[0]?.id ?? '';
    },
    async candidate() {
      const { rows } = await pool.query<StoredCandidate>(`select id, text from ${table} where name = $1`, [CANDIDATE]);
      return rows[0] ?? { id: '', text: '' };
    },
    writeCandidate: ({ id, text }) =>
      id === ''
        ? pool.query(`delete from ${table} where name = $1`, [CANDIDATE])
        : pool.query(insert, [CANDIDATE, id, text, null]),
  };
}
