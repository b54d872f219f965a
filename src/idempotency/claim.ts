import type { HeldReply, KeptResult } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import type { NoteOptions } from './note.ts';
import type { Unavailable } from './refusal.ts';

/** What became of an outcome, and therefore which answer the caller must get. */
export type ClaimCompletion =
  /** The outcome is stored. The caller and every retry get it. */
  | { readonly kind: 'kept' }
  /** Another outcome was stored first. The caller gets that one, never its own. */
  | { readonly kind: 'superseded'; readonly result: KeptResult }
  /** The key now belongs to another request, e.g. after the store lost its data. Only the caller gets its outcome. */
  | { readonly kind: 'lost' }
  | {
      /** The store did not acknowledge the outcome yet. The command is retried in the background until it does. */
      readonly kind: 'pending';
      /**
       * `own`: the caller gets its own outcome. `unavailable`: the caller is asked to retry (503), because the outcome
       * of another execution may be stored first (I12: `reexecute` and `reconcile`).
       */
      readonly answer: 'own' | 'unavailable';
      readonly error: unknown;
    }
  | {
      /** Only for a claim in a transaction: it was rolled back, nothing of it remains, and the key is free. */
      readonly kind: 'undone';
      readonly error: unknown;
      /** Whether a retry would fail for the same reason, such as a constraint. */
      readonly isRefused: boolean;
    };

/** What became of a claim that its owner abandoned. */
export type ClaimRelease =
  | { readonly kind: 'released' }
  /** This attempt did not own the claim any more. */
  | { readonly kind: 'lost' }
  /** The outcome of another owner is stored. */
  | { readonly kind: 'settled'; readonly result: KeptResult }
  /** The store did not acknowledge the release yet. The command is retried in the background until it does. */
  | { readonly kind: 'pending'; readonly error: unknown };

/**
 * Whether the effect may happen: only after `ok`. After any other reply the claim ended, and the caller calls none
 * of its methods.
 */
export type ClaimDispatch = HeldReply | Unavailable;

/**
 * The claim of one attempt on a key. Its lease is renewed until {@link Claim.complete} or {@link Claim.abandon} is
 * called, for at most `maxRunMs`. The owner must call exactly one of the two, unless {@link Claim.dispatch} returned
 * anything but `ok`.
 */
export interface Claim extends ClaimId {
  readonly fingerprint: string;
  /**
   * The open transaction, if the claim was made in one: {@link Claim.complete} commits it, and {@link Claim.abandon}
   * rolls it back.
   */
  readonly transaction?: object | undefined;
  /** Increases by one with every claim of the key: a fencing token, for a downstream service that supports those. */
  readonly generation: number;
  /** True if the claim was taken over from an owner that recorded its dispatch: the effect may have happened. */
  readonly inherited: boolean;
  /** Whether this owner asked for dispatch and got `ok`. */
  readonly dispatched: boolean;
  /**
   * Aborted if the claim is lost before dispatch. After dispatch, with `reexecute` and `reconcile`, aborted if another
   * attempt may have taken the claim over. Aborted in any case after `maxRunMs`. In the last two cases
   * {@link Claim.complete} works as before.
   */
  readonly signal: AbortSignal;
  /**
   * Await it just before the effect. Resolves at once if `begin` already recorded the dispatch.
   * @param note a JSON value of at most 1 MiB, from which the store's `rows.dispatch` writes rows in the step itself. If
   * the reply is lost, or the claim is abandoned later without another note, the release carries this note, too
   * @throws OptionError for a note that cannot be written. Otherwise never rejects
   */
  dispatch(note?: unknown): Promise<ClaimDispatch>;
  /**
   * Sets the note of {@link Claim.complete} or {@link Claim.abandon}, for an owner that does not call them itself, such
   * as the handler behind a gate. A later call replaces it. A note that is given to one of the two replaces it, too.
   * @throws OptionError for a note that cannot be written, and after the claim ended
   */
  noteOutcome(note: unknown): void;
  /**
   * Stores the outcome, success or error (I6). Resolves after the first try; without an acknowledgement, the command is
   * retried in the background. A value over `maxKeptBytes` is not stored (I7). A second call does nothing and returns
   * the first result.
   *
   * If PostgreSQL refuses the rows of the note, the outcome is `pending` with a `RowsFailedError`: it is retried with
   * its rows, and is never stored without them.
   * @throws OptionError for a note that cannot be written: the claim is still open. Otherwise never rejects
   */
  complete(result: KeptResult, options?: NoteOptions): Promise<ClaimCompletion>;
  /**
   * Releases the key. Call it only if nothing was dispatched, or if the effect is *known* not to have happened and
   * cannot happen any more. Resolves after the first try. Does nothing after {@link Claim.complete}.
   * @throws OptionError for a note that cannot be written: the claim is still open. Otherwise never rejects
   */
  abandon(options?: NoteOptions): Promise<ClaimRelease>;
  /**
   * The outcome of this owner is unknown: the claim is neither completed nor released. Stops renewing, and ends the lease
   * of a dispatched claim, so that a retry finds the orphan at once. Resolves after the first try. Never rejects.
   */
  leave(): Promise<void>;
}
