import type { KeptFile } from 'headgate/file';
import type { AdjustmentStore, ClaimStore, LimitStore } from 'headgate/stores';
import type { Config } from '../config/schema.ts';
import type { ScrapedMetric } from '../operations/store-metrics.ts';
import type { FleetBoard } from './fleet-board.ts';

/** Stores the counters and claims of the process. */
export interface GatewayStore {
  readonly kind: 'memory' | 'redis' | 'redis-cluster' | 'postgres';
  /** Limits that operators adjusted. Its failures are failures of the other stores too, which are logged. */
  readonly adjustments: AdjustmentStore;
  /**
   * A file copy of the adjustments that this process knows. Undefined if no file is configured, or if the file is the
   * only store of the adjustments.
   */
  readonly keptFile: KeptFile | undefined;
  /** Data that the gateways with the same store exchange; undefined if only this process could read it. */
  readonly fleet: FleetBoard | undefined;
  /** Opens the store of a candidate's counters: in memory, or under separate keys beside the keys of `limits`. */
  openShadow(where: 'same' | 'memory'): LimitStore;
  /** Whether commands are sent. A store in memory needs no circuit breaker. */
  breaker(): 'closed' | 'open' | 'half-open';
  readonly limits: LimitStore;
  /** Claims of idempotency keys. In memory their bound is separate. */
  readonly claims: ClaimStore;
  readonly metrics: readonly ScrapedMetric[];
  /** Resolves within `storeDeadlineMs`, to `degraded` while the store is down and the failure policy answers. */
  health(): Promise<'ok' | 'degraded'>;
  /** Shares the room for claims anew, among the applications of another config. */
  setApplications(config: Config): void;
  close(): void;
}

/**
 * Most pairs of account and route in memory: the most that a store supports. Only accounts and routes of the config
 * reach the store, so the config bounds them. A reload adds to them, and must never find the store full (S18).
 */
export const MAX_PAIRS = 16_000_000;
/** Most pairs of address and route in memory: about 150 MB. Clients choose their addresses. */
export const MAX_ADDRESSES = 1_000_000;
