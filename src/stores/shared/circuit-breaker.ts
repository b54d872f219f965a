import { StoreTimeoutError, StoreUnavailableError } from '../../base/errors.ts';
import { monotonicClock } from '../../core/clock.ts';

/** Options of {@link CircuitBreaker}. */
export interface CircuitBreakerOptions {
  /** Longest wait for an answer, in milliseconds. */
  readonly deadlineMs: number;
  /** Whether the client is connected now. If it is not, it would queue the command. */
  readonly isReady: () => boolean;
  /** Whether an error says nothing about the health of the server. Such an error does not count towards opening. */
  readonly isHarmless: (error: unknown) => boolean;
  /** Whether the server did not execute the command of a call that failed with this error, and never will. */
  readonly isNotExecuted?: (error: unknown) => boolean;
  /** Called with the error of every call that failed. Must not throw. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Called after every call that succeeded. Must not throw. */
  readonly onAnswer?: (() => void) | undefined;
}

/** Consecutive failures that open the circuit breaker. */
const MAX_FAILURES = 5;
/** Milliseconds between two calls that test the server while the circuit breaker is open. */
const RETRY_MS = 500;

/**
 * A deadline and a circuit breaker for calls to a server that can be slow, frozen or down. Each call returns an answer
 * or an error within the deadline. While the circuit breaker is open, calls fail at once.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  /** Consecutive failures while it is closed. */
  #failures = 0;
  /** When it opened, or when the last test failed. By the monotonic clock: the wall clock can be set back. */
  #openedAt: number | undefined;
  #isTesting = false;
  #timeouts = 0;
  #late = 0;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  /** Calls that were given up at the deadline. */
  get timeouts(): number {
    return this.#timeouts;
  }

  /** Calls that were given up, and answered later. */
  get late(): number {
    return this.#late;
  }

  /** `open`: calls fail at once. `half-open`: one call tests the server. */
  get state(): 'closed' | 'open' | 'half-open' {
    if (this.#openedAt === undefined) return 'closed';
    return this.#isTesting ? 'half-open' : 'open';
  }

  /**
   * @param deadlineMs longest wait for this answer
   * @param read reads the answer, once it is there in time. If it rejects, the call failed
   * @throws StoreTimeoutError, StoreUnavailableError
   */
  run<T>(send: () => Promise<T>, deadlineMs?: number): Promise<T>;
  run<Answer, T>(send: () => Promise<Answer>, deadlineMs: number, read: (answer: Answer) => T | Promise<T>): Promise<T>;
  async run<Answer, T>(
    send: () => Promise<Answer>,
    deadlineMs = this.#options.deadlineMs,
    read?: (answer: Answer) => T | Promise<T>,
  ): Promise<Answer | T> {
    let sent = false;
    const sending = (): Promise<Answer> => {
      sent = true;
      return send();
    };
    try {
      const result = await this.#runIfClosed(async () => {
        const answer = await this.#runWithDeadline(sending, deadlineMs);
        return read === undefined ? answer : read(answer);
      });
      this.#options.onAnswer?.();
      return result;
    } catch (error) {
      forgetCommand(error);
      this.#options.onError?.(error);
      throw error instanceof StoreTimeoutError
        ? error
        : new StoreUnavailableError(error, {
            sent: sent && this.#options.isNotExecuted?.(error) !== true,
          });
    }
  }

  /** Runs a call if the circuit breaker is closed, or if it is this call's turn to test the server. */
  async #runIfClosed<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isTesting) throw new Error('the circuit breaker is half-open: another call tests the server');
    const isTest = this.#openedAt !== undefined;
    if (isTest && monotonicClock.now() - (this.#openedAt as number) < RETRY_MS)
      throw new Error('the circuit breaker is open');
    this.#isTesting = isTest;
    let isWell = true;
    try {
      return await call();
    } catch (error) {
      isWell = this.#options.isHarmless(error);
      throw error;
    } finally {
      this.#settle(isTest, isWell);
    }
  }

  /** Counts the result of a call. Calls that were sent before it opened say nothing about the server now. */
  #settle(isTest: boolean, isWell: boolean): void {
    if (isTest) this.#isTesting = false;
    else if (this.#openedAt !== undefined) return;
    this.#failures = isWell ? 0 : this.#failures + 1;
    if (isWell) this.#openedAt = undefined;
    else if (isTest || this.#failures >= MAX_FAILURES) this.#openedAt = monotonicClock.now();
  }

  /** Waits until the deadline. A call that is given up may still be executed; a late answer is counted. */
  #runWithDeadline<T>(send: () => Promise<T>, deadlineMs: number): Promise<T> {
    if (!this.#options.isReady()) return Promise.reject(new Error('the client is not connected'));
    return new Promise((resolve, reject) => {
      let givenUp = false;
      const giveUp = (): void => {
        givenUp = true;
        this.#timeouts++;
        reject(new StoreTimeoutError(deadlineMs));
      };
      // If this process itself stood still, the answer may have arrived unread. Node reads it between timers and
      // immediates, so the call is late only if it is still unanswered then.
      let reading: NodeJS.Immediate | undefined;
      const timer = setTimeout(() => {
        reading = setImmediate(giveUp);
      }, deadlineMs);
      const unlessGivenUp =
        <V>(settle: (value: V) => void) =>
        (value: V): void => {
          clearTimeout(timer);
          clearImmediate(reading);
          if (!givenUp) settle(value);
        };
      start(send).then((value) => {
        if (givenUp) this.#late++;
        unlessGivenUp(resolve)(value);
      }, unlessGivenUp(reject));
    });
  }
}

/** ioredis puts the command on its errors. Its arguments are tokens and stored responses, and logs print errors. */
function forgetCommand(error: unknown): void {
  if (error instanceof Error) Reflect.deleteProperty(error, 'command');
}

/** Turns an error that a client throws synchronously into a rejected promise. */
async function start<T>(send: () => Promise<T>): Promise<T> {
  return send();
}
