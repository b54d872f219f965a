import type { ClaimId } from '../core/ports.ts';
import type { Refusal } from './refusal.ts';

/** A command that was sent to the store. */
export type ClaimCommandName = 'begin' | 'dispatch' | 'extend' | 'complete' | 'abandon';

/** What happened to a claim, and to which one. */
export type IdempotencyEvent = ClaimId & ClaimEvent;

/** What happened to a claim. */
export type ClaimEvent =
  | {
      /** The key was claimed: its request may be executed. */
      readonly type: 'claimed';
      /** The claim was taken over from an owner that recorded its dispatch. */
      readonly inherited: boolean;
    }
  /** An earlier outcome was returned. */
  | { readonly type: 'replayed' }
  | { readonly type: 'refused'; readonly reason: Refusal['reason'] }
  /** A duplicate waited for the original (I5). Emitted before the event for the result of the wait. */
  | { readonly type: 'waited'; readonly waitedMs: number }
  /** The `reconcile` callback was asked about an orphan (I9). `error` is what the callback threw, if it threw. */
  | { readonly type: 'reconciled'; readonly answer: 'done' | 'not_done' | 'unknown'; readonly error?: unknown }
  | {
      /** The outcome is stored. */
      readonly type: 'completed';
      readonly status: string;
      /** False if the value was too large, or could not be serialized (I7). */
      readonly valueKept: boolean;
      readonly error?: unknown;
    }
  /** Another outcome was stored first. */
  | { readonly type: 'superseded' }
  /** The key was released. */
  | { readonly type: 'released' }
  /** According to the store, this attempt does not own the claim, or does not own it any more. */
  | { readonly type: 'lost'; readonly command: ClaimCommandName }
  /** The owner exceeded `maxRunMs` and stops renewing. When the lease expires, retries find an orphan (I9). */
  | { readonly type: 'overdue'; readonly dispatched: boolean }
  /**
   * The store forgot an unknown outcome after its retention, because its scope had no room for a new key (I13). A retry
   * of this request is executed again.
   */
  | { readonly type: 'forgotten' }
  /** The store failed, and nothing was executed (I12). */
  | { readonly type: 'unavailable'; readonly command: ClaimCommandName; readonly error: unknown }
  /** The store failed, and the request is executed without protection (I12). */
  | { readonly type: 'bypassed'; readonly error: unknown }
  /** A command failed and is retried in the background until the store acknowledges it. */
  | {
      readonly type: 'retrying';
      readonly command: ClaimCommandName;
      /** How many times the command failed. */
      readonly tries: number;
      readonly error: unknown;
    }
  /**
   * A command in the background was not acknowledged within `retentionMs`, or a day if that is shorter; or its note has
   * no room in memory.
   */
  | { readonly type: 'given_up'; readonly command: ClaimCommandName };
