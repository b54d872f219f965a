import type { Reply } from '../http/problem.ts';
import type { Claim } from '../idempotency/claim.ts';

/** How the response to a request with an idempotency key is captured and stored, so that every retry gets it (I4). */
export interface ResponseRecording {
  /** Largest body that is stored, in bytes. If a body is longer, only status and fields are stored (I7). */
  readonly maxBytes: number;
  /**
   * If true, nothing of the response may reach the client before {@link store} resolved: another response may replace
   * it.
   */
  readonly storeBeforeSending: boolean;
  /**
   * Stores the response. Call it once, unless the passage was abandoned, and also if the client disconnected (I11).
   * Wait for it before the client can see the end of the response. Never rejects.
   * @returns the reply that the client gets instead, if another outcome of this key counts; otherwise undefined
   */
  store(response: CapturedResponse): Promise<Reply | undefined>;
  /**
   * Call it in place of {@link store} if the response is not the outcome of the request, because the program is wrong:
   * the charge is refunded, the key is released (I6), and the error is logged. Never rejects.
   * @returns the reply that the client gets: a 500, or another outcome that is already stored under the key
   */
  fail(error: Error): Promise<Reply>;
  /**
   * The claim of the request, for a process that lets another program execute it: that program completes or abandons
   * the claim in the store. Call `leave()` of it, and then neither {@link store} nor {@link fail}.
   */
  readonly claim?: Claim | undefined;
}

/** Status and header fields of a response, as the client gets them. */
export interface CapturedHead {
  readonly status: number;
  /** Names and values in one flat list. The gate leaves out the fields that must not be stored. */
  readonly fields: readonly string[];
}

/** A response as the client gets it. */
export interface CapturedResponse extends CapturedHead {
  /** Undefined if the body was too long or incomplete. */
  readonly body: Uint8Array | undefined;
  /** True if the response did not end: it broke off, or its end was not awaited because it is too long. */
  readonly isBroken?: boolean;
}
