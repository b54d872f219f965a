/**
 * Stores in PostgreSQL, which several processes can share.
 * @module headgate/postgres
 */

export { createPostgresAdjustments, type PostgresAdjustmentsOptions } from './shared-limits/stores/postgres.ts';
export type { PgliteDatabase, PgPool, PostgresClient, PostgresJsSql } from './stores/postgres/client.ts';
export { PostgresSetupError } from './stores/postgres/errors.ts';
export { migrate, type SchemaOptions, sql } from './stores/postgres/schema.ts';
export {
  createPostgresClaimStore,
  createPostgresStore,
  type PostgresClaimStoreStats,
  type PostgresStoreOptions,
  type PostgresStoreStats,
} from './stores/postgres/stub.ts';
