import { type CircuitBreakerPolicy, CircuitState, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import { StoreTimeoutError, StoreUnavailableError } from '../../core/errors.ts';

/** Options of {@link CircuitBreaker}. */
export interface CircuitBreakerOptions {
  /** Longest wait for an answer, in milliseconds. */
  readonly deadlineMs: number;
  /** Whether the client is connected now. If it is not, it would queue the command. */
  readonly isReady: () => boolean;
  /** Whether an error says nothing about the health of the server. Such an error does not count towards opening. */
  readonly isHarmless: (error: unknown) => boolean;
  /** Called with the error of every call that failed. */
  readonly onError?: ((error: unknown) => void) | undefined;
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
  readonly #policy: CircuitBreakerPolicy;
  #timeouts = 0;
  #late = 0;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
    this.#policy = circuitBreaker(
      handleWhen((error) => !options.isHarmless(error)),
      { breaker: new ConsecutiveBreaker(MAX_FAILURES), halfOpenAfter: RETRY_MS },
    );
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
    const { state } = this.#policy;
    return state === CircuitState.Closed ? 'closed' : state === CircuitState.HalfOpen ? 'half-open' : 'open';
  }

  /**
   * @param deadlineMs longest wait for this answer
   * @throws StoreTimeoutError, StoreUnavailableError
   */
  async run<T>(send: () => Promise<T>, deadlineMs = this.#options.deadlineMs): Promise<T> {
    let sent = false;
    const sending = (): Promise<T> => {
      sent = true;
      return send();
    };
    try {
      // Otherwise this call would wait for the one that tests the server.
      if (this.state === 'half-open')
        throw new Error('the circuit breaker is half-open: another call tests the server');
      return await this.#policy.execute(() => this.#runWithDeadline(sending, deadlineMs));
    } catch (error) {
      forgetCommand(error);
      this.#options.onError?.(error);
      throw error instanceof StoreTimeoutError ? error : new StoreUnavailableError(error, { sent });
    }
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
