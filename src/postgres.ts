/**
 * Stores in PostgreSQL, which several processes can share.
 * @module headgate/postgres
 */

export type { PgliteDatabase, PgPool, PostgresClient, PostgresJsSql } from './stores/postgres/client.ts';
export { PostgresSetupError } from './stores/postgres/errors.ts';
export { migrate, type SchemaOptions, sql } from './stores/postgres/schema.ts';
