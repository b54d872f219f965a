import type { EventEmitter } from 'node:events';
import { OptionError, StoreUnavailableError } from '../../base/errors.ts';
import { checkOptions } from '../../base/options.ts';
import { describeThrown } from '../../base/thrown.ts';
import { monotonicClock } from '../../core/clock.ts';
import type { ReadyOptions } from '../../core/ports.ts';

/** The parts that a store needs to wait for its server. */
export interface ReadyCheck {
  /** Whether the clients are connected. A call before that would only fail. */
  isConnected(): boolean;
  /** Listens to errors of the clients, which know why they are not connected. Returns what stops it. */
  onClientError(listener: (error: unknown) => void): () => void;
  /** A call that changes nothing, and that loads the same code as the first real call. */
  probe(): Promise<unknown>;
  /** The error to throw at once, if waiting does not help after this error of a probe. */
  finalError?(error: unknown): Error | undefined;
}

/** Milliseconds between two attempts. */
const RETRY_MS = 50;
/** The longest delay that `setTimeout` accepts. */
const MAX_DELAY_MS = 2 ** 31 - 1;
const NO_ANSWER = 'the server did not answer';
const NOT_CONNECTED =
  "the client is not connected: check its 'error' events, its address and password, and that connect() was called";

/**
 * Resolves after the first answer of the server.
 * @throws OptionError, StoreUnavailableError, the final error, the reason of the signal
 */
export async function waitUntilReady(check: ReadyCheck, options: ReadyOptions = {}): Promise<void> {
  checkOptions(options, ['timeoutMs', 'signal'], 'options');
  const { timeoutMs = 10_000, signal } = options;
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1)
    throw new OptionError('timeoutMs', timeoutMs, 'must be an integer of 1 or more');
  const end = monotonicClock.now() + timeoutMs;
  const left = (): number => end - monotonicClock.now();
  let failure: unknown;
  let final: Error | undefined;
  const stopListening = check.onClientError((error) => {
    failure = error;
  });
  try {
    for (;;) {
      signal?.throwIfAborted();
      const isConnected = check.isConnected();
      if (isConnected) {
        const answered = check.probe().then(
          () => true,
          (error: unknown) => {
            final = check.finalError?.(error);
            // A call that was not sent, because the circuit breaker is open, hides the reason of the one before it.
            if (!(error instanceof StoreUnavailableError) || error.sent) failure = error;
            return false;
          },
        );
        // The deadline of the probe itself may be later.
        if (await within(left(), signal, answered)) return;
        if (final !== undefined) throw final;
      }
      if (left() <= 0) {
        const cause = failure ?? new Error(isConnected ? NO_ANSWER : NOT_CONNECTED);
        const reason = `no answer within ${timeoutMs} ms (${describeThrown(cause).message})`;
        throw new StoreUnavailableError(new Error(reason, { cause }));
      }
      await within(Math.min(RETRY_MS, left()), signal);
    }
  } finally {
    stopListening();
  }
}

/** Waits for the result of `attempt`; false after so many milliseconds, or once the signal is aborted. */
function within(ms: number, signal: AbortSignal | undefined, attempt?: Promise<boolean>): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (result: boolean): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', giveUp);
      resolve(result);
    };
    const giveUp = (): void => end(false);
    const timer = setTimeout(giveUp, Math.min(ms, MAX_DELAY_MS));
    signal?.addEventListener('abort', giveUp);
    if (signal?.aborted) giveUp();
    attempt?.then(end);
  });
}

/** Listens to the errors of a client that is an event emitter. Returns what stops it. */
export function listenTo(client: object, listener: (error: unknown) => void): () => void {
  const { on, off } = client as Partial<EventEmitter>;
  on?.call(client, 'error', listener);
  return () => void off?.call(client, 'error', listener);
}
