/** Why nothing was executed and no outcome was returned. */
export type Refusal =
  | {
      /** The original request is still running (I5). */
      readonly reason: 'in_progress';
      /** When to retry, in milliseconds from now. */
      readonly retryAfterMs: number;
    }
  /** The original was dispatched and its owner died, so its outcome is unknown (I9). */
  | { readonly reason: 'orphan' }
  /** The key belongs to another request, with this fingerprint (I2). */
  | { readonly reason: 'mismatch'; readonly fingerprint: string }
  /** The original completed with this status, but its value was too large to store, or could not be serialized (I7). */
  | { readonly reason: 'not_kept'; readonly status: string }
  /** The scope uses as many keys as one scope may, all in progress or completed (I13). */
  | {
      readonly reason: 'too_many_keys';
      /** About how long until one of the keys expires, in milliseconds. */
      readonly retryAfterMs: number;
    }
  /** The claim was lost before dispatch, or the operation stopped because of it. Another owner may be executing. */
  | { readonly reason: 'lost' }
  /** The caller's own signal was aborted. */
  | { readonly reason: 'aborted' };

/** Nothing was executed, for the given reason. */
export type Refused = { readonly kind: 'refused' } & Refusal;

/** The store could not be reached, or its reply did not arrive. */
export interface Unavailable {
  readonly kind: 'unavailable';
  readonly error: unknown;
}
