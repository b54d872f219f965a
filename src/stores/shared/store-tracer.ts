import { tracingChannel } from 'node:diagnostics_channel';
import { STORE_CHANNEL, type StoreCall } from '../../core/store-channel.ts';

const channel = /* @__PURE__ */ tracingChannel<typeof STORE_CHANNEL, StoreCall>(STORE_CHANNEL);

/**
 * Publishes a call if anything listens.
 * @param send gets the published call, or undefined if nothing listens
 */
export function traceCall<T>(
  store: StoreCall['store'],
  operation: string,
  breaker: StoreCall['breaker'],
  send: (call?: StoreCall) => Promise<T>,
): Promise<T> {
  if (!channel.hasSubscribers) return send();
  // The channel would set the result on the call, but it can be a stored response, which no listener may see.
  const call = { store, operation, breaker, set result(_: unknown) {} };
  return channel.tracePromise(send, call, undefined, call);
}
