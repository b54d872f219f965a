import type { KeptResult } from '../core/claim.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../core/ports.ts';
import { encodeNote } from './note.ts';
import type { ClaimSettings } from './settings.ts';

/** Result of a release by an operator. */
export type OperatorRelease =
  /** The key is free for the request it belongs to. */
  | 'released'
  /** There is no record of the key, or the key is free already. */
  | 'absent'
  /** The lease of its owner is not over: released only with `force`. */
  | 'in_progress'
  /** Its outcome is stored, and remains stored. */
  | 'completed'
  /** Another command changed the claim at the same time: inspect it again. */
  | 'changed';

/** Result of a completion by an operator. */
export type OperatorCompletion = 'completed' | 'absent' | 'already_completed' | 'changed';

/** How long the record of a claim is stored after its last command, and after its release. */
type Retention = Pick<ClaimSettings, 'retentionMs' | 'releasedRetentionMs'>;

/** Long enough for the commands of one release, which are not renewed. */
const LEASE_MS = 30_000;

/** Identifies the owner of a claim. */
type Owner = Pick<ClaimView, 'generation' | 'inherited'> & { readonly token: string };

/**
 * Releases a key. The operator made sure that its effect did not happen and cannot happen any more.
 * @param force also release before the owner's lease expires; the owner may be about to act
 */
export async function releaseByOperator(
  store: ClaimStore,
  id: ClaimId,
  { retentionMs, releasedRetentionMs }: Retention,
  force: boolean,
  note?: unknown,
): Promise<OperatorRelease> {
  const encoded = encodeNote(store, 'abandon', id, note);
  const view = await store.inspect(id);
  if (view === undefined || view.state === 'free') return 'absent';
  if (view.state === 'completed') return 'completed';
  if (view.leaseMs > 0 && !force) return 'in_progress';
  const owner = view.leaseMs > 0 ? { ...view, token: view.owner } : await takeOver(store, id, view, retentionMs);
  if (owner === undefined) return 'changed';
  const { token, generation, inherited } = owner;
  const command = { token, generation, fingerprint: view.fingerprint, retentionMs };
  // An inherited dispatch mark would survive the release, so it first becomes this owner's mark.
  if (inherited) await store.dispatch(id, { ...command, leaseMs: LEASE_MS });
  const reply = await store.abandon(id, { ...command, releasedRetentionMs, note: encoded });
  return reply.kind === 'released' ? 'released' : reply.kind === 'settled' ? 'completed' : 'changed';
}

/** Completes a key with the outcome that the operator found out. Every retry gets this outcome. */
export async function completeByOperator(
  store: ClaimStore,
  id: ClaimId,
  retentionMs: number,
  result: KeptResult,
  note?: unknown,
): Promise<OperatorCompletion> {
  const encoded = encodeNote(store, 'complete', id, note);
  const view = await store.inspect(id);
  if (view === undefined) return 'absent';
  const { fingerprint } = view;
  const command = { token: crypto.randomUUID(), fingerprint, retentionMs, result, note: encoded };
  const reply = await store.complete(id, command);
  return reply.kind === 'ok' ? 'completed' : reply.kind === 'superseded' ? 'already_completed' : 'changed';
}

/** Claims the key with a new token, so that a retry that takes it over at the same time is noticed. */
async function takeOver(
  store: ClaimStore,
  id: ClaimId,
  { fingerprint }: ClaimView,
  retentionMs: number,
): Promise<Owner | undefined> {
  const token = crypto.randomUUID();
  const reply = await store.begin(id, {
    token,
    fingerprint,
    retentionMs,
    leaseMs: LEASE_MS,
    onOrphan: 'reexecute',
    dispatch: false,
  });
  return reply.kind === 'claimed' ? { token, generation: reply.generation, inherited: reply.inherited } : undefined;
}
