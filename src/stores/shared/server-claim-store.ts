import type {
  AbandonCommand,
  AbandonReply,
  BeginCommand,
  BeginReply,
  CompleteCommand,
  CompleteReply,
  HeldCommand,
  HeldReply,
} from '../../core/claim.ts';
import type { ClaimId, ClaimPage, ClaimStore, ClaimView } from '../../core/ports.ts';

/** Figures of a claim store on a server since its start, for operators. */
export interface ClaimStoreStats {
  /** Commands that were sent. */
  readonly calls: number;
  /** Commands that were given up at the deadline. */
  readonly timeouts: number;
  /** `begin` commands that did nothing, because they reached the server after the deadline that they carry. */
  readonly lateBegins: number;
  /** New keys that were refused because their scope was full. */
  readonly refusedInScope: number;
  /**
   * Claims of unknown outcome that this process forgot, after their retention, because their scope had too many. A retry
   * of such a request is executed again.
   */
  readonly forgottenUnresolved: number;
  /** The circuit breaker. `open`: calls fail at once, and one call every 500 ms tests whether the server is back. */
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** Results of more than 8 KiB. They use their own deadline, by size, and their own circuit breaker. */
  readonly large: {
    /** Bytes that wait or are under way now. */
    readonly bytes: number;
    /** Calls that were given up at their deadline. */
    readonly timeouts: number;
    /** Calls that were not sent, because of the budget of their scope or because their turn came too late. */
    readonly refused: number;
    /** Outcomes that were stored without their value, because it could not be stored in time (I7). */
    readonly dropped: number;
    readonly breaker: 'closed' | 'open' | 'half-open';
  };
}

/** A claim store on a server: each command is a promise. */
export interface ServerClaimStore extends ClaimStore {
  begin(id: ClaimId, command: BeginCommand): Promise<BeginReply>;
  extend(id: ClaimId, command: HeldCommand): Promise<HeldReply>;
  dispatch(id: ClaimId, command: HeldCommand): Promise<HeldReply>;
  complete(id: ClaimId, command: CompleteCommand): Promise<CompleteReply>;
  abandon(id: ClaimId, command: AbandonCommand): Promise<AbandonReply>;
  inspect(id: ClaimId): Promise<ClaimView | undefined>;
  onForgotten(listener: (id: ClaimId) => void): () => void;
  list(cursor: string | undefined, count: number): Promise<ClaimPage>;
}
