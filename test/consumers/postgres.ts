// The PostgreSQL stores, with each client, and without a framework.
import { PGlite } from '@electric-sql/pglite';
import { createIdempotency, createLimiter } from 'headgate';
import {
  createPostgresAdjustments,
  createPostgresClaimStore,
  createPostgresStore,
  createTransactionalIdempotency,
  migrate,
  sql,
} from 'headgate/postgres';
import { createSharedLimits } from 'headgate/shared-limits';
import pg from 'pg';
import postgres from 'postgres';

const pool = new pg.Pool();
export const limiter = createLimiter({ store: createPostgresStore(pool, { schema: 's' }), limits: ['60/1m'] });
export const idempotency = createIdempotency({ store: createPostgresClaimStore(pool) });
export const shared = createSharedLimits({ base: ['60/1m'], adjustments: createPostgresAdjustments(pool) });
export const text: string = sql({ schema: 's' });
export const migrated: Promise<void> = migrate(pool);
/** The transaction of a handler is the client's own. */
export const rows = [
  createTransactionalIdempotency(pool).run('k', {}, async (client) => (await client.query('select 1')).rowCount),
  createTransactionalIdempotency(postgres()).run('k', {}, async (client) => (await client`select 1`).count),
  createTransactionalIdempotency(new PGlite()).run('k', {}, async (client) => (await client.query('select 1')).rows),
];
// @ts-expect-error a URL is not a client
createPostgresStore('postgres://localhost');
