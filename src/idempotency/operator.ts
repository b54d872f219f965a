import type { KeptResult } from '../core/claim.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../core/ports.ts';

/** What a release by hand came to. */
export type OperatorRelease =
  /** The key is free for the request it belongs to. */
  | 'released'
  /** There is nothing under the key, or it is free already. */
  | 'absent'
  /** Its owner holds a lease: only with `force`. */
  | 'in_progress'
  /** Its outcome is kept, and stays so. */
  | 'completed'
  /** Somebody else was faster: look again. */
  | 'changed';

/** What settling by hand came to. */
export type OperatorCompletion = 'completed' | 'absent' | 'already_completed' | 'changed';

/** What is said to a store by hand is not renewed. */
const LEASE_MS = 30_000;

/**
 * Gives a key back by hand: somebody has made sure that its effect did not happen, and cannot happen any more.
 * @param force also where the owner's lease runs; it may be about to act
 */
export async function release(
  store: ClaimStore,
  id: ClaimId,
  retentionMs: number,
  force: boolean,
): Promise<OperatorRelease> {
  const view = await store.inspect(id);
  if (view === undefined || view.state === 'free') return 'absent';
  if (view.state === 'completed') return 'completed';
  if (view.leaseMs > 0 && !force) return 'in_progress';
  const held = view.leaseMs > 0 ? ownersOf(view) : await takeOver(store, id, view, retentionMs);
  if (held === undefined) return 'changed';
  const command = { ...held, fingerprint: view.fingerprint, retentionMs };
  // An inherited mark would stay.
  if (held.inherited) await store.dispatch(id, { ...command, leaseMs: LEASE_MS });
  const reply = await store.abandon(id, command);
  return reply.kind === 'released' ? 'released' : reply.kind === 'settled' ? 'completed' : 'changed';
}

/** Settles a key by hand: somebody has found out what its outcome was. It is what every retry gets. */
export async function complete(
  store: ClaimStore,
  id: ClaimId,
  retentionMs: number,
  result: KeptResult,
): Promise<OperatorCompletion> {
  const view = await store.inspect(id);
  if (view === undefined) return 'absent';
  const { fingerprint } = view;
  const reply = await store.complete(id, { token: crypto.randomUUID(), fingerprint, retentionMs, result });
  return reply.kind === 'ok' ? 'completed' : reply.kind === 'superseded' ? 'already_completed' : 'changed';
}

interface Holding {
  readonly token: string;
  readonly generation: number;
  readonly inherited: boolean;
}

function ownersOf({ owner, generation, inherited }: ClaimView): Holding {
  return { token: owner, generation, inherited };
}

/** Under a token of its own, so that a retry that takes over at the same time is seen. */
async function takeOver(
  store: ClaimStore,
  id: ClaimId,
  { fingerprint }: ClaimView,
  retentionMs: number,
): Promise<Holding | undefined> {
  const token = crypto.randomUUID();
  const command = {
    token,
    fingerprint,
    retentionMs,
    leaseMs: LEASE_MS,
    onOrphan: 'reexecute',
    dispatch: false,
  } as const;
  const reply = await store.begin(id, command);
  return reply.kind === 'claimed' ? { token, generation: reply.generation, inherited: reply.inherited } : undefined;
}
