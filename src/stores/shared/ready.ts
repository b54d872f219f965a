import { monotonicClock } from '../../core/clock.ts';
import { OptionError, StoreUnavailableError } from '../../core/errors.ts';
import { checkOptions } from '../../core/options.ts';
import type { ReadyOptions } from '../../core/ports.ts';
import { describeThrown } from '../../core/thrown.ts';

/** What a store needs to wait for its server. */
export interface ReadyCheck {
  /** Whether the clients are connected. A call before that would only fail. */
  isConnected(): boolean;
  /** Listens to errors of the clients, which know why they are not connected. Returns what stops it. */
  onClientError(listener: (error: unknown) => void): () => void;
  /** A call that changes nothing, and that loads what the first real call would have to load. */
  probe(): Promise<unknown>;
}

/** Milliseconds between two attempts. */
const RETRY_MS = 50;
const NOT_CONNECTED = 'the client is not connected: check its address, and that connect() was called if it needs that';

/**
 * Resolves after the first answer of the server.
 * @throws OptionError, StoreUnavailableError, the reason of the signal
 */
export async function waitUntilReady(check: ReadyCheck, options: ReadyOptions = {}): Promise<void> {
  checkOptions(options, ['timeoutMs', 'signal'], 'options');
  const { timeoutMs = 10_000, signal } = options;
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 0)
    throw new OptionError('timeoutMs', timeoutMs, 'must be an integer of 0 or more');
  const end = monotonicClock.now() + timeoutMs;
  let last: unknown = new Error(NOT_CONNECTED);
  const stopListening = check.onClientError((error) => {
    last = error;
  });
  try {
    for (;;) {
      signal?.throwIfAborted();
      if (check.isConnected()) {
        try {
          await check.probe();
          return;
        } catch (error) {
          // A call that was not sent, because the circuit breaker is open, hides the reason of the one before it.
          if (!(error instanceof StoreUnavailableError) || error.sent) last = error;
        }
      }
      const left = end - monotonicClock.now();
      if (left <= 0) {
        const reason = `no answer within ${timeoutMs} ms (${describeThrown(last).message})`;
        throw new StoreUnavailableError(new Error(reason, { cause: last }));
      }
      await pause(Math.min(RETRY_MS, left), signal);
    }
  } finally {
    stopListening();
  }
}

/** Waits, at most until the signal is aborted. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}
