import type { IdempotentRequest } from '../gate/idempotency-stage.ts';

/** How a body is read. */
export interface ReadBodyOptions {
  /**
   * Bound of the body, in bytes; a longer one is answered 413. It is held in memory until your handler has read it.
   * @default 1_048_576
   */
  readonly maxBytes?: number | undefined;
  /**
   * Longest wait for the next piece of the body, in milliseconds; after it, 408.
   * @default 30_000
   */
  readonly idleMs?: number | undefined;
}

/** Options of `idempotentRequest`. */
export interface IdempotentRequestOptions extends ReadBodyOptions {
  /** The caller's application, as your authentication knows it: keys of two never meet (I2). */
  readonly scope: string;
  /** The connected account, where it stands anywhere but in the URL or the body. */
  readonly account?: string | undefined;
  /**
   * Key of an HMAC, not empty: without it, whoever reads the store can test guesses of a request.
   * @default plain SHA-256
   */
  readonly secret?: string | Uint8Array | undefined;
  /** For requests of this kind, over those of `createIdempotency`. */
  readonly settings?: Omit<IdempotentRequest, 'scope' | 'key' | 'fingerprint' | 'signal'> | undefined;
}
