import type { Decision } from '../../core/decision.ts';
import type { Changed, Denials } from './denials.ts';
import type { Failover } from './failover.ts';

/** A settlement that is remembered by its receipt. */
export interface Receipted {
  readonly receipt: string;
  /** The last millisecond of the server's clock in which it changes something. */
  readonly until: number | undefined;
}

/** The parts of a store that settles on a server. */
export interface SettlementParts {
  readonly denials: Denials;
  readonly failover: Failover;
  /** Whether a settlement failed before the server executed anything, and will not be executed later. */
  readonly isNotExecuted: (error: unknown) => boolean;
}

/**
 * Settles a decision once. If nothing was changed, the decision can still be settled.
 * @param cost in the end; undefined: the decision is undone
 * @param changed the counters that it changes
 * @param send adds the change to the counts on the server, and returns whether one of them was still active
 */
export async function settleOnServer(
  { denials, failover, isNotExecuted }: SettlementParts,
  decision: Decision,
  cost: number | undefined,
  changed: Changed,
  send: (change: number) => Promise<boolean>,
): Promise<boolean> {
  if (decision.degraded) return cost === undefined ? failover.undo(decision) : failover.settle(decision, cost);
  if (!decision.takeCharge()) return false;
  try {
    const isSettled = await denials.forgetDuring(changed, () => send((cost ?? 0) - decision.cost));
    if (!isSettled) decision.returnCharge();
    return isSettled;
  } catch (error) {
    if (isNotExecuted(error)) decision.returnCharge();
    throw error;
  }
}

/** The last millisecond in which a settlement changes something, as a safe integer. */
export function lastMsOf(receipted: Receipted | undefined): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.floor(receipted?.until ?? Number.MAX_SAFE_INTEGER));
}
