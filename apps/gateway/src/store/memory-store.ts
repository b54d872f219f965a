import type { StoreUnavailableError } from 'headgate';
import { createFileAdjustments } from 'headgate/file';
import {
  createMemoryAdjustments,
  createMemoryClaimStore,
  createMemoryStore,
  type MemoryClaimStoreOptions,
} from 'headgate/memory';
import type { AdjustmentStore, LimitStore } from 'headgate/stores';
import { ConfigError } from '../config/config-error.ts';
import type { Config } from '../config/schema.ts';
import { memoryClaimMetrics, memoryLimitMetrics, storeUp } from '../operations/store-metrics.ts';
import { withAddresses } from './address-store.ts';
import { type GatewayStore, MAX_ADDRESSES, MAX_PAIRS } from './gateway-store.ts';

/** Most idempotency keys in memory, and the least share of one application if the others use few. */
const MAX_CLAIMS = 100_000;
const MIN_SHARE = 10_000;

/**
 * Opens stores in the memory of this process.
 * @throws ConfigError if the file of the adjustments cannot be read
 */
export async function openMemory(config: Config): Promise<GatewayStore> {
  const limits = createMemoryStore({ maxKeys: MAX_PAIRS });
  const addresses = createMemoryStore({ maxKeys: MAX_ADDRESSES });
  const claims = createMemoryClaimStore(claimBounds(config));
  const health = async () => 'ok' as const;
  const metrics = [
    storeUp(health),
    ...memoryLimitMetrics(() => limits.stats()),
    ...memoryLimitMetrics(() => addresses.stats(), 'memory_addresses'),
    ...memoryClaimMetrics(() => claims.stats()),
  ];
  const setApplications = (next: Config): void => claims.setShares(claimBounds(next));
  return {
    kind: 'memory',
    adjustments: await openAdjustments(config.adjustments.file),
    keptFile: undefined,
    fleet: undefined,
    openShadow: openShadowInMemory,
    breaker: () => 'closed',
    limits: withAddresses(limits, addresses),
    claims,
    metrics,
    setApplications,
    health,
    close() {},
  };
}

export function openShadowInMemory(): LimitStore {
  return withAddresses(createMemoryStore({ maxKeys: MAX_PAIRS }), createMemoryStore({ maxKeys: MAX_ADDRESSES }));
}

/**
 * @throws ConfigError if the file cannot be read: by the config alone, more requests might pass than an operator
 *   allowed
 */
async function openAdjustments(file: string | undefined): Promise<AdjustmentStore> {
  if (file === undefined) return createMemoryAdjustments();
  const adjustments = createFileAdjustments(file);
  try {
    await adjustments.read(undefined);
  } catch (error) {
    const { cause } = error as StoreUnavailableError;
    throw new ConfigError(file, [{ path: 'adjustments.file', reason: (cause as Error).message }]);
  }
  return adjustments;
}

/** Applications share the room for claims, so that no application can take another's part (I13). */
function claimBounds({ keys, perApplication }: Config): MemoryClaimStoreOptions {
  const applications = Math.max(1, new Set(keys.map(({ application }) => application)).size);
  const share = Math.max(MIN_SHARE, Math.floor(MAX_CLAIMS / applications));
  const { maxClaims = share } = perApplication;
  const maxKeys = Math.max(MAX_CLAIMS, maxClaims);
  // If all of them together may store more than fits, each gets a part that the others cannot take.
  const isScarce = applications * maxClaims > maxKeys;
  const guaranteed = Math.max(1, Math.floor(maxKeys / 2 / applications));
  return { maxKeys, maxClaimsPerScope: maxClaims, minClaimsPerScope: isScarce ? guaranteed : undefined };
}
