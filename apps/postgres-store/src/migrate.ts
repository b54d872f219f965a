import { readFileSync } from 'node:fs';
import type { Pool } from 'pg';
import { schemaName } from './options.ts';

const FILES = ['limits.sql', 'claims.sql'];

/** Of the lock under which one process at a time migrates. */
const LOCK = '7233180926112403';

/**
 * Creates the schema, its tables and its functions, as far as they are missing. Any number of processes may call it at
 * the same time. The user needs the right to create them; the stores themselves only use them.
 * @throws OptionError
 */
export async function migrate(pool: Pool, options: { readonly schema?: string | undefined } = {}): Promise<void> {
  const schema = schemaName(options.schema);
  const client = await pool.connect();
  // Without a listener, a connection that breaks would end the process. The query fails with its error, too.
  const ignore = (): void => {};
  client.on('error', ignore);
  try {
    await client.query('begin');
    await client.query(`select pg_advisory_xact_lock(${LOCK})`);
    const { rows } = await client.query<{ encoding: string; exists: boolean }>(
      `select current_setting('server_encoding') as encoding, to_regnamespace($1) is not null as exists`,
      [schema],
    );
    const encoding = rows[0]?.encoding;
    if (encoding !== 'UTF8') throw new Error(`the encoding of the database is ${encoding}, and must be UTF8`);
    // Even "if not exists" needs the right to create a schema.
    if (rows[0]?.exists !== true) await client.query(`create schema ${schema}`);
    for (const file of FILES) {
      const sql = readFileSync(new URL(file, import.meta.url), 'utf8');
      await client.query(sql.replaceAll('headgate.', `${schema}.`));
    }
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  } finally {
    client.off('error', ignore);
    client.release();
  }
}
