// Until the real stores are merged.
import type { ClaimStore, LimitStore } from '../../core/ports.ts';
import { createMemoryClaimStore } from '../memory/claims.ts';
import { createMemoryStore } from '../memory/limits.ts';
import type { OnStoreFailure } from '../shared/failover.ts';
import type { PostgresClient } from './client.ts';
import { Schema } from './schema.ts';

export interface PostgresStoreOptions {
  readonly schema?: string;
  readonly deadlineMs?: number;
  readonly onStoreFailure?: OnStoreFailure;
  readonly onError?: ((error: unknown) => void) | undefined;
  readonly logger?: ((message: string, error: unknown) => void) | false | undefined;
  readonly localMaxKeys?: number;
}
export interface PostgresStoreStats {
  readonly calls: number;
  readonly coalesced: number;
  readonly localRejections: number;
  readonly timeouts: number;
  readonly late: number;
  readonly degraded: number;
  readonly breaker: 'closed' | 'open' | 'half-open';
}
export interface PostgresClaimStoreStats {
  readonly calls: number;
  readonly timeouts: number;
  readonly late: number;
  readonly refusedInScope: number;
  readonly breaker: 'closed' | 'open' | 'half-open';
}
const STATS = { calls: 0, coalesced: 0, localRejections: 0, timeouts: 0, late: 0, degraded: 0, refusedInScope: 0, breaker: 'closed' as const };
export function createPostgresStore(client: PostgresClient, options: PostgresStoreOptions): LimitStore & { stats(): PostgresStoreStats; ready(options?: object): Promise<void> } {
  const schema = new Schema(client, { schema: options.schema });
  return Object.assign(createMemoryStore(), { stats: () => STATS, ready: () => schema.check() }) as never;
}
export function createPostgresClaimStore(client: PostgresClient, options: { readonly schema?: string; readonly deadlineMs?: number; readonly onError?: unknown; readonly logger?: unknown; readonly maxClaimsPerScope?: number | undefined }): ClaimStore & { stats(): PostgresClaimStoreStats; ready(options?: object): Promise<void> } {
  const schema = new Schema(client, { schema: options.schema });
  return Object.assign(createMemoryClaimStore(), { stats: () => STATS, ready: () => schema.check() }) as never;
}
