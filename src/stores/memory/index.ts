/**
 * Stores in this process's memory.
 * @module headgate/memory
 */

export { createMemoryAdjustments, type MemoryAdjustmentsOptions } from './adjustments.ts';
export {
  createMemoryClaimStore,
  type MemoryClaimShares,
  type MemoryClaimStore,
  type MemoryClaimStoreOptions,
  type MemoryClaimStoreStats,
} from './claims.ts';
export { createMemoryStore, type MemoryStore, type MemoryStoreOptions, type MemoryStoreStats } from './limits.ts';
