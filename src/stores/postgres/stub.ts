// Until the real stores are merged.
import type { ClaimStore } from '../../core/ports.ts';
import { createMemoryClaimStore } from '../memory/claims.ts';
import type { PostgresClient } from './client.ts';
import { Schema } from './schema.ts';

export interface PostgresClaimStoreStats {
  readonly calls: number;
  readonly timeouts: number;
  readonly late: number;
  readonly refusedInScope: number;
  readonly breaker: 'closed' | 'open' | 'half-open';
}
const STATS = {
  calls: 0,
  coalesced: 0,
  localRejections: 0,
  timeouts: 0,
  late: 0,
  degraded: 0,
  refusedInScope: 0,
  breaker: 'closed' as const,
};
export function createPostgresClaimStore(
  client: PostgresClient,
  options: {
    readonly schema?: string;
    readonly deadlineMs?: number;
    readonly onError?: unknown;
    readonly logger?: unknown;
    readonly maxClaimsPerScope?: number | undefined;
  },
): ClaimStore & { stats(): PostgresClaimStoreStats; ready(options?: object): Promise<void> } {
  const schema = new Schema(client, { schema: options.schema });
  return Object.assign(createMemoryClaimStore(), { stats: () => STATS, ready: () => schema.check() }) as never;
}
