/**
 * Stores in PostgreSQL, which several processes can share.
 * @module headgate/postgres
 */

export type { ReadyOptions } from './core/ports.ts';
export { STORE_CHANNEL, type StoreCall } from './core/store-channel.ts';
export { RolledBackError } from './idempotency/rolled-back.ts';
export { createPostgresAdjustments, type PostgresAdjustmentsOptions } from './shared-limits/stores/postgres.ts';
export type { PostgresClaimStoreOptions, PostgresLargeValueOptions } from './stores/postgres/claim-options.ts';
export type { ClaimRows } from './stores/postgres/claim-rows.ts';
export {
  createPostgresClaimStore,
  type PostgresClaimStore,
  type PostgresClaimStoreStats,
} from './stores/postgres/claims.ts';
export type { PostgresClient } from './stores/postgres/client.ts';
export type { Isolation } from './stores/postgres/database.ts';
export { PostgresSetupError, RowsFailedError } from './stores/postgres/errors.ts';
export type { Executor } from './stores/postgres/executor.ts';
export {
  createPostgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
  type PostgresStoreStats,
} from './stores/postgres/limits.ts';
export type { PgPool } from './stores/postgres/pg.ts';
export type { PgliteDatabase } from './stores/postgres/pglite.ts';
export type { PostgresJsSql } from './stores/postgres/postgres-js.ts';
export { migrate, type SchemaOptions, sql } from './stores/postgres/schema.ts';
export type { OnStoreFailure } from './stores/shared/failover.ts';
export type { TransactionOf } from './transactions/client-transaction.ts';
export type { TransactionalIdempotencyOptions, TransactionSettings } from './transactions/options.ts';
export {
  createTransactionalIdempotency,
  type TransactionalIdempotency,
  type TransactionRunOptions,
  type TransactionRunResult,
  type TransactionTicket,
} from './transactions/transactional-idempotency.ts';
