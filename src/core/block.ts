/** The requests that a block rejects: all requests of an account, or (with `route`) of one of its routes. */
export interface BlockTarget {
  readonly account: string;
  readonly route?: string | undefined;
}

/** Rejects requests before any window is checked, however much room is in their windows (S21). */
export interface Block {
  /** How long from now on, in milliseconds: a positive integer. Of a decision: how much longer. */
  readonly forMs: number;
  /** Why, in words that the client may read. */
  readonly reason?: string | undefined;
}
