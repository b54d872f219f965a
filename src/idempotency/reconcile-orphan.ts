import type { KeptResult } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import { Attempt } from './attempt.ts';
import { LeasedClaim } from './leased-claim.ts';
import { askReconcile, type Reconcile } from './reconcile.ts';
import type { Runtime } from './runtime.ts';
import type { ClaimSettings } from './settings.ts';

/** What became of an orphan that a job asked about. */
export type OrphanReconciliation =
  /** It was done: its outcome is stored. */
  | 'completed'
  /** It was not done: its key is free. */
  | 'released'
  /** The callback did not find out, or threw: it is still an orphan. */
  | 'unknown'
  /** There is no record of the key, or the key is free already. */
  | 'absent'
  /** The lease of its owner is not over. */
  | 'in_progress'
  /** Its owner died before the dispatch: nothing happened, and a retry executes. */
  | 'not_dispatched'
  /** An outcome is stored already. */
  | 'already_completed'
  /** Another command changed the claim at the same time: inspect it again. */
  | 'changed';

/**
 * Takes an orphan over without a request of its client, and asks the callback what became of it.
 * @throws the store's errors
 */
export async function reconcileOrphan(
  runtime: Runtime,
  id: ClaimId,
  settings: ClaimSettings,
  reconcile: Reconcile<KeptResult>,
): Promise<OrphanReconciliation> {
  const view = await runtime.store.inspect(id);
  if (view === undefined || view.state === 'free') return 'absent';
  if (view.state === 'completed') return 'already_completed';
  if (view.leaseMs > 0) return 'in_progress';
  if (!view.dispatched) return 'not_dispatched';
  const attempt = new Attempt(runtime, id, view.fingerprint, { ...settings, onOrphan: 'reconcile' }, false);
  const begun = await attempt.begin();
  switch (begun.kind) {
    case 'claimed':
      return settle(attempt, new LeasedClaim(attempt, begun), reconcile);
    case 'in_progress':
      return 'in_progress';
    case 'settled':
      return 'already_completed';
    case 'unavailable':
      throw begun.error;
    default:
      return 'changed';
  }
}

async function settle(
  attempt: Attempt,
  claim: LeasedClaim,
  reconcile: Reconcile<KeptResult>,
): Promise<OrphanReconciliation> {
  if (!claim.inherited) {
    // It was resolved since it was inspected.
    await claim.abandon();
    return 'changed';
  }
  const answer = await askReconcile(attempt, claim, reconcile);
  if (claim.isLost) return 'changed';
  if (answer === 'unknown') {
    // The mark of the first owner stays, so it is an orphan again, without a wait for the lease.
    await claim.abandon();
    return 'unknown';
  }
  const { note } = answer;
  if (answer.done) {
    const completion = await claim.complete(answer.result, { note });
    switch (completion.kind) {
      case 'kept':
        return 'completed';
      case 'superseded':
        return 'already_completed';
      case 'lost':
        return 'changed';
      default:
        throw completion.error;
    }
  }
  // The mark of the first owner would survive the release, so it first becomes this owner's mark.
  const dispatched = await claim.dispatch();
  if (dispatched.kind === 'unavailable') throw dispatched.error;
  if (dispatched.kind !== 'ok') return dispatched.kind === 'settled' ? 'already_completed' : 'changed';
  const release = await claim.abandon({ note });
  if (release.kind === 'pending') throw release.error;
  return release.kind === 'settled' ? 'already_completed' : release.kind === 'lost' ? 'changed' : 'released';
}
