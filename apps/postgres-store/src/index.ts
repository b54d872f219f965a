export { createPostgresClaimStore, type PostgresClaimStoreOptions } from './claim-store.ts';
export { createPostgresStore } from './limit-store.ts';
export { migrate } from './migrate.ts';
export type { PostgresStoreOptions } from './options.ts';
