import type { Logger } from '../../base/logger.ts';
import { isPromise } from '../../base/maybe-promise.ts';
import { monotonicClock } from '../../core/clock.ts';

/** Options of {@link OutageLog}. */
export interface OutageLogOptions {
  /** The content of the server, as the log names it: `rate limits`. */
  readonly what: string;
  /** The behavior while the server fails, as a part of a sentence. */
  readonly effect: string;
  /** Whether the client is connected now. */
  readonly isReady: () => boolean;
  readonly log: Logger;
  /** Called with the error of every call that failed. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Whether an error says nothing about the health of the server. */
  readonly isHarmless: (error: unknown) => boolean;
}

/**
 * An outage is over after a success and so many milliseconds without a failure. Otherwise single failures fill the log.
 */
const QUIET_MS = 1_000;

/** Logs when calls to a server begin to fail and when they succeed again, once each, because a failover hides it. */
export class OutageLog {
  readonly #options: OutageLogOptions;
  #hasAnswered = false;
  #isDown = false;
  #failedAt = Number.NEGATIVE_INFINITY;
  #hasLoggedRecord = false;

  constructor(options: OutageLogOptions) {
    this.#options = options;
  }

  /** Call it with the error of each call that failed. */
  readonly failed = (error: unknown): void => {
    const { what, effect, isReady, log, isHarmless } = this.#options;
    if (isHarmless(error)) {
      this.recordFailed(error);
      return;
    }
    this.report(error);
    this.#failedAt = monotonicClock.now();
    if (this.#isDown) return;
    this.#isDown = true;
    const wasConnected = this.#hasAnswered || isReady();
    const advice = wasConnected ? '' : '; connect the client, and await store.ready() when the program starts';
    log(`headgate: the store for ${what} fails, so ${effect}${advice}`, error);
  };

  /** Call it when a call succeeded. */
  readonly answered = (): void => {
    this.#hasAnswered = true;
    if (!this.#isDown || monotonicClock.now() - this.#failedAt < QUIET_MS) return;
    this.#isDown = false;
    this.#options.log(`headgate: the store for ${this.#options.what} answers again`, undefined);
  };

  /** Call it with an error of one record, although the server is well. Only the first is logged. */
  recordFailed(error: unknown): void {
    this.report(error);
    if (this.#hasLoggedRecord) return;
    this.#hasLoggedRecord = true;
    const { what, log } = this.#options;
    log(`headgate: a call for ${what} failed, although the server is well; further ones are not logged`, error);
  }

  /** Passes an error to `onError` only. What `onError` throws is logged, since it must not replace the error. */
  report(error: unknown): void {
    const { onError, log } = this.#options;
    const blame = (thrown: unknown): void => log('headgate: onError of a store failed', thrown);
    try {
      const result: unknown = onError?.(error);
      if (isPromise(result)) result.then(undefined, blame);
    } catch (thrown) {
      blame(thrown);
    }
  }
}
