/** Why nothing is executed, and no outcome given. */
export type Refusal =
  | {
      /** The original is running (I5). */
      readonly reason: 'in_progress';
      /** When to try again. */
      readonly retryAfterMs: number;
    }
  /** The original was dispatched, and its owner died: nobody knows what became of it (I9). */
  | { readonly reason: 'orphan' }
  /** The key belongs to another request (I2). */
  | { readonly reason: 'mismatch'; readonly fingerprint: string }
  /** The original is over, but its outcome was too large to keep (I7). */
  | { readonly reason: 'not_kept'; readonly status: string }
  /** The claim was lost, and nothing was dispatched, or the operation stopped for it: somebody else may be executing. */
  | { readonly reason: 'lost' }
  /** The caller's own signal fired. */
  | { readonly reason: 'aborted' };

/** Not executed, and why. */
export type Refused = { readonly kind: 'refused' } & Refusal;
