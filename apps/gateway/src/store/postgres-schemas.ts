import { isHeadgateError } from 'headgate';
import { createPostgresStore, migrate, sql } from 'headgate/postgres';
import type { Pool } from 'pg';
import { SHADOW_SUFFIX } from '../config/schema/store.ts';
import type { PostgresStore } from '../config/store-url.ts';
import { boardSql } from './postgres-board.ts';

/** The database is not set up for the gateway. The message says what to do. */
export class StoreSetupError extends Error {
  override readonly name = 'StoreSetupError';
}

/** The schemas of a store: of everything, and of the counters of a candidate. */
export function schemasOf({ schema }: Pick<PostgresStore, 'schema'>): readonly [string, string] {
  return [schema, schema + SHADOW_SUFFIX];
}

/** The SQL that creates everything in a database without it, for migration tools. */
export function schemaSql(store: Pick<PostgresStore, 'schema'>): string {
  const all = schemasOf(store).map((schema) => sql({ schema }));
  return ['begin;', ...all, boardSql(quoted(store.schema)), 'commit;\n'].join('\n');
}

/**
 * Creates or updates everything. Any number of processes may do it at the same time.
 * @throws StoreSetupError, or the error of the connection
 */
export async function migrateSchemas(pool: Pool, store: PostgresStore): Promise<void> {
  try {
    for (const schema of schemasOf(store)) await migrate(pool, { schema });
    await pool.query(boardSql(quoted(store.schema)));
  } catch (error) {
    if (!isHeadgateError(error, 'store_setup')) throw error;
    throw new StoreSetupError(error.message, { cause: error });
  }
}

/**
 * Checks that everything is there, and that the user may use it.
 * @throws StoreSetupError, or the error of the connection
 */
export async function checkSchemas(pool: Pool, store: PostgresStore, timeoutMs: number): Promise<void> {
  const advice = 'with the gateway, run headgate migrate --config FILE, or set "migrate": true in store.postgres';
  for (const schema of schemasOf(store)) {
    try {
      await createPostgresStore(pool, { schema, deadlineMs: timeoutMs, logger: false }).ready({ timeoutMs });
    } catch (error) {
      if (!isHeadgateError(error, 'store_setup')) throw error;
      throw new StoreSetupError(`${error.message} (${advice})`, { cause: error });
    }
  }
  const names = schemasOf(store).map((schema) => JSON.stringify(schema));
  const { rows } = await pool.query<{ board: boolean; forbidden: string | null }>(
    `select to_regclass($1 || '.gateway_board_1') is not null as board,
      (select string_agg(oid::regclass::text, ', ' order by oid) from pg_class
        where relnamespace in (to_regnamespace($1), to_regnamespace($2)) and relkind in ('r', 'p')
          and not (has_table_privilege(oid, 'select') and (relname = 'meta' or has_table_privilege(oid, 'insert')
            and has_table_privilege(oid, 'update') and has_table_privilege(oid, 'delete')))) as forbidden`,
    names,
  );
  if (rows[0]?.board !== true)
    throw new StoreSetupError(`the schema ${names[0]} has no table gateway_board_1: ${advice}`);
  const { forbidden } = rows[0];
  if (forbidden !== null)
    throw new StoreSetupError(
      `the user ${store.username} may not use ${forbidden}: grant select, insert, update and delete on all tables of the schemas ${names.join(' and ')}`,
    );
}

/** A schema's name in a statement. The config allows no quote in it. */
export function quoted(schema: string): string {
  return `"${schema}"`;
}
