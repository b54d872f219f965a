import type { Block, BlockTarget, FreshStart } from '../../core/block.ts';
import type { CooldownCommand, CooldownReply } from '../../core/cooldown.ts';
import type { Decision, WindowStatus } from '../../core/decision.ts';
import type { LeaseGrant, LimitStore } from '../../core/ports.ts';
import type { Slot, SlotReply } from '../../core/slot.ts';
import type { WindowSet } from '../../core/window-set.ts';

/** Figures of a limit store on a server since its start, for operators. */
export interface LimitStoreStats {
  /** Calls that were sent to decide. */
  readonly calls: number;
  /** Decisions that shared another decision's call. */
  readonly coalesced: number;
  /** Rejections that were repeated without asking the server (S20). */
  readonly localRejections: number;
  /** Calls that were given up at the deadline. */
  readonly timeouts: number;
  /** Answers that arrived after the deadline. Their calls are also counted in `timeouts`. */
  readonly late: number;
  /** Decisions that `onStoreFailure` made. */
  readonly degraded: number;
  /** The circuit breaker. `open`: calls fail at once, and one call every 500 ms tests whether the server is back. */
  readonly breaker: 'closed' | 'open' | 'half-open';
}

/** A limit store on a server: what changes something is a promise. */
export interface ServerLimitStore extends LimitStore {
  undo(decision: Decision): Promise<boolean>;
  settleOnce(decision: Decision, cost: number, receipt: string, until?: number): Promise<boolean>;
  lease(
    account: string,
    route: string,
    windowSet: WindowSet,
    cost: number,
    requests: number,
  ): LeaseGrant | Promise<LeaseGrant>;
  charge(account: string, route: string, windowSet: WindowSet, cost: number): Promise<readonly WindowStatus[]>;
  holdSlot(slot: Slot, leaseMs: number): Promise<SlotReply>;
  releaseSlot(slot: Slot): Promise<void>;
  block(target: BlockTarget, block: Block, fresh?: FreshStart): Promise<void>;
  unblock(target: BlockTarget): Promise<void>;
  blocked(target: BlockTarget): Promise<Block | undefined>;
  cooldown(target: BlockTarget, command: CooldownCommand): Promise<CooldownReply>;
  /** Returns the current figures. */
  stats(): LimitStoreStats;
}
