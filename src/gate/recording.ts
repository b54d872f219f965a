import type { Reply } from '../http/problem.ts';

/** How an answer is captured, so that every retry gets it (I4). */
export interface Recording {
  /** Most of a body that is kept, in bytes; of a longer one nothing need be captured (I7). */
  readonly maxBytes: number;
  /** Nothing of the answer may reach the client before {@link store} resolved, since another one may take its place. */
  readonly storeBeforeSending: boolean;
  /**
   * To be called once with the whole answer, unless the passage was abandoned, whether the client is still there or not (I11); awaited before the
   * client can see the end of the answer. Resolves to the answer that it gets instead, where that one counts. Never rejects.
   */
  store(response: CapturedResponse): Promise<Reply | undefined>;
}

/** An answer as the client gets it. */
export interface CapturedResponse {
  readonly status: number;
  /** Names and values in one flat list; what is not to be stored is left out by the gate. */
  readonly fields: readonly string[];
  /** Undefined where it was too long, or broke off. */
  readonly body: Uint8Array | undefined;
}
