import type { Head } from '../core/adjustment.ts';
import { monotonicClock } from '../core/clock.ts';
import type { AdjustmentInstance, AdjustmentStore } from './ports.ts';
import { headOf, revisionOf } from './revision.ts';
import type { Applied, Instance } from './shared-limits.ts';

const APPLIED_MS = 2_000;
const ASK_MS = 50;

type Store = Pick<AdjustmentStore, 'instances'>;

/** @throws the store's errors */
export async function listInstances(store: Store): Promise<readonly Instance[]> {
  const instances = await store.instances();
  return instances.map(({ head, ...each }) => ({ ...each, revision: revisionOf(head) }));
}

/**
 * Waits until every process obeys a change.
 * @throws OptionError, and the store's errors
 */
export async function waitUntilApplied(store: Store, revision: string, timeoutMs = APPLIED_MS): Promise<Applied> {
  const wanted = headOf(revision);
  const end = monotonicClock.now() + timeoutMs;
  for (;;) {
    const instances = await store.instances();
    const missing = instances.filter((each) => !obeys(each, wanted)).map(({ name }) => name);
    if ((missing.length === 0 && instances.length > 0) || monotonicClock.now() >= end)
      return { instances: instances.length - missing.length, of: instances.length, missing };
    await new Promise((resolve) => setTimeout(resolve, ASK_MS));
  }
}

function obeys({ head }: AdjustmentInstance, wanted: Head | undefined): boolean {
  if (wanted === undefined) return true;
  if (head === undefined) return false;
  const { version, nonce } = wanted;
  return head.version > version || (head.version === version && head.nonce === nonce);
}
