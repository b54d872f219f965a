/**
 * Stores in this process's memory.
 * @module headgate/memory
 */

export { createMemoryAdjustments, type MemoryAdjustmentsOptions } from './shared-limits/stores/memory.ts';
export {
  createMemoryClaimStore,
  type MemoryClaimShares,
  type MemoryClaimStore,
  type MemoryClaimStoreOptions,
  type MemoryClaimStoreStats,
} from './stores/memory/claims.ts';
export {
  createMemoryStore,
  type MemoryStore,
  type MemoryStoreOptions,
  type MemoryStoreStats,
} from './stores/memory/limits.ts';
