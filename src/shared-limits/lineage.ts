import { type AdjustmentEntry, type AdjustmentState, type Head, isSameHead } from '../core/adjustment.ts';

/** The parts that a reply leaves out, because this version cannot read it. */
export interface UnreadableAdjustments {
  /** How many adjustments were left out. Absent if none. */
  readonly unreadable?: number | undefined;
}

/** The part of a store that a process does not know yet. */
export type AdjustmentReply =
  /** The store has exactly the head that the process knows. */
  | { readonly kind: 'same'; readonly now: number }
  /** The store has no history: it is new, or lost its data. */
  | { readonly kind: 'none'; readonly now: number }
  /** The changes that follow the head that the process knows, oldest first. */
  | ({
      readonly kind: 'changes';
      readonly now: number;
      readonly entries: readonly AdjustmentEntry[];
    } & UnreadableAdjustments)
  /** Everything, because the store does not know the process's head, or has too many changes since then. */
  | ({ readonly kind: 'all'; readonly now: number; readonly state: AdjustmentState } & UnreadableAdjustments);

/** A process's reaction to a reply. */
export type Step =
  | { readonly kind: 'keep' }
  | { readonly kind: 'apply'; readonly entries: readonly AdjustmentEntry[] }
  /** `forked`: the store has another history, without changes that this process knows. */
  | { readonly kind: 'adopt'; readonly state: AdjustmentState; readonly forked: boolean }
  /** The store lacks changes that the process knows: the process gives them back, if the head is still `seen`. */
  | { readonly kind: 'restore'; readonly seen: Head | undefined };

/**
 * Decides how a process goes on after it read the store: it follows the store, or brings it forward. It never takes
 * away a change that the store has: only a store whose head is one of the changes that the process knows is brought
 * forward.
 * @param known undefined if the process has not read any history yet
 */
export function reconcile(known: Pick<AdjustmentState, 'head' | 'recent'> | undefined, reply: AdjustmentReply): Step {
  switch (reply.kind) {
    case 'same':
      return { kind: 'keep' };
    case 'none':
      return known === undefined ? { kind: 'keep' } : { kind: 'restore', seen: undefined };
    case 'changes':
      return { kind: 'apply', entries: reply.entries };
    case 'all': {
      const { state } = reply;
      if (known === undefined) return { kind: 'adopt', state, forked: false };
      if (known.recent.some((entry) => isSameHead(entry, state.head))) return { kind: 'restore', seen: state.head };
      const other = state.recent.find(({ version }) => version === known.head.version);
      const isAhead = other === undefined ? state.head.version > known.head.version : isSameHead(other, known.head);
      return { kind: 'adopt', state, forked: !isAhead };
    }
  }
}
