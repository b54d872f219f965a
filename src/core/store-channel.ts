/**
 * Name of the tracing channel of `node:diagnostics_channel` that publishes each {@link StoreCall}: `start` in the
 * context of the caller, and `asyncEnd` when the call is over.
 */
export const STORE_CHANNEL = 'headgate:store';

/** One call of a store that leaves the process, as its caller sees it. Listeners must not change it. */
export interface StoreCall {
  /** The called part: the counters, idempotency keys, the stored responses over 8 KiB, or the adjustments of limits. */
  readonly store: 'limits' | 'claims' | 'large_values' | 'adjustments';
  /** The method of the store, such as `consume` or `begin`. */
  readonly operation: string;
  /** The circuit breaker that the call goes through. Its `state` is the current one. */
  readonly breaker: { readonly state: 'closed' | 'open' | 'half-open' };
  /** Why the store failed. Also set if the failure policy decided, so that the call itself succeeded. */
  error?: unknown;
}
