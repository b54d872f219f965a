/** The requests that a block rejects: all requests of an account, or (with `route`) of one of its routes. */
export interface BlockTarget {
  readonly account: string;
  readonly route?: string | undefined;
}

/** Says that a block deletes the counters of its target too, so that the target begins anew when it ends. */
export interface FreshStart {
  /**
   * The longest duration of a window that the caller knows, in milliseconds. For a store that cannot delete all counters
   * of an account in one step: it has to know for how long they may count.
   */
  readonly longestMs: number;
}

/** Rejects requests before any window is checked, however much room is in their windows (S21). */
export interface Block {
  /** How long from now on, in milliseconds: a positive integer. Of a decision: how much longer. */
  readonly forMs: number;
  /** Why, in words that the client may read. */
  readonly reason?: string | undefined;
}
