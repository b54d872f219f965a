import type { Instance } from 'headgate/shared-limits';
import { inSlices } from '../base/slices.ts';
import { type ProcessDetails, readDetails } from '../traffic/process-details.ts';
import type { AdminContext } from './context.ts';

/** A process with the same store, and the details that it reported. */
export interface FleetProcess extends Pick<Instance, 'name' | 'revision' | 'ageMs'> {
  /** Whether it is this process, whose details are current. */
  readonly self: boolean;
  /** Undefined of a program with the library, or of another version of headgate. */
  readonly details: ProcessDetails | undefined;
}

/** @throws the store's errors */
export async function listFleet({ sharedLimits, store, details }: AdminContext): Promise<FleetProcess[]> {
  const fleet: FleetProcess[] = [];
  const instances = await sharedLimits.instances();
  const said = (await store.fleet?.detailsOf(instances.map(({ name }) => name))) ?? [];
  await inSlices(instances.entries(), ([i, each]) => {
    const self = each.name === sharedLimits.instance;
    const text = said[i] ?? undefined;
    fleet.push({ ...each, self, details: self ? details() : text === undefined ? undefined : readDetails(text) });
  });
  return fleet;
}
