import { OptionError } from '../../core/errors.ts';
import type { IdempotentRequest } from '../../gate/idempotent-request.ts';

/** What a timer can count. */
const LONGEST_MS = 2 ** 31 - 1;

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
  /**
   * What else tells for whom a request is, beside the gate's `account` and what stands in URL and body: such as another header. The same key for
   * another one is another request (I2).
   */
  readonly account?: string | undefined;
  /**
   * Key of an HMAC, not empty: without it, whoever reads the store can test guesses of a request.
   * @default plain SHA-256
   */
  readonly secret?: string | Uint8Array | undefined;
  /** For requests of this kind, over those of `createIdempotency`. */
  readonly settings?: Omit<IdempotentRequest, 'scope' | 'key' | 'fingerprint' | 'signal'> | undefined;
}

/**
 * With the defaults. What is no bound would be none, so it is refused.
 * @throws OptionError
 */
export function checkReadBody({ maxBytes = 1_048_576, idleMs = 30_000 }: ReadBodyOptions): {
  maxBytes: number;
  idleMs: number;
} {
  if (!Number.isSafeInteger(maxBytes) || maxBytes < 0)
    throw new OptionError('maxBytes', maxBytes, 'must be a whole number of bytes, not negative');
  if (!Number.isSafeInteger(idleMs) || idleMs < 1 || idleMs > LONGEST_MS)
    throw new OptionError('idleMs', idleMs, `must be a whole number of milliseconds, 1 to ${LONGEST_MS}`);
  return { maxBytes, idleMs };
}

/** Neither can hide the other. */
export function bothAccounts(given: string | undefined, asked: string | undefined): string | undefined {
  return given === undefined ? asked : JSON.stringify([given, asked]);
}
