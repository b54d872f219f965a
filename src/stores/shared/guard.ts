import { type CircuitBreakerPolicy, CircuitState, ConsecutiveBreaker, circuitBreaker, handleWhen } from 'cockatiel';
import { StoreTimeoutError, StoreUnavailableError } from '../../core/errors.ts';

/** Options of {@link Guard}. */
export interface GuardOptions {
  /** Longest wait for an answer, in milliseconds. */
  readonly deadlineMs: number;
  /** Whether the client has a connection now; a command given to it otherwise would wait in a queue. */
  readonly isReady: () => boolean;
  /** Hears of every failure. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Failures in a row after which the server is taken for away. */
const FAILURES = 5;
/** Milliseconds until one call tries again. */
const RETRY_MS = 500;

/**
 * Stands between the store and a server that may be slow, frozen or gone: an answer or an error within the deadline, and none of the
 * waiting while the server is known to be away.
 */
export class Guard {
  readonly #options: GuardOptions;
  readonly #breaker: CircuitBreakerPolicy;
  #timeouts = 0;
  #late = 0;

  constructor(options: GuardOptions) {
    this.#options = options;
    // A record that is not ours is a fault of that record, and one that is on its way to another node is that one's: neither must take the
    // server away from all others.
    this.#breaker = circuitBreaker(
      handleWhen((error) => !isRecordFault(error)),
      { breaker: new ConsecutiveBreaker(FAILURES), halfOpenAfter: RETRY_MS },
    );
  }

  get timeouts(): number {
    return this.#timeouts;
  }

  /** Commands given up that were answered after all. */
  get late(): number {
    return this.#late;
  }

  /** `open`: the server is taken for away; `half-open`: one call is trying. */
  get state(): 'closed' | 'open' | 'half-open' {
    const { state } = this.#breaker;
    return state === CircuitState.Closed ? 'closed' : state === CircuitState.HalfOpen ? 'half-open' : 'open';
  }

  /** @throws StoreTimeoutError, StoreUnavailableError */
  async run<T>(send: () => Promise<T>): Promise<T> {
    try {
      // Others would wait for the one that tries.
      if (this.state === 'half-open') throw new Error('it is being tried again');
      return await this.#breaker.execute(() => this.#bounded(send));
    } catch (error) {
      this.#options.onError?.(error);
      throw error instanceof StoreTimeoutError ? error : new StoreUnavailableError(error);
    }
  }

  /** Waits no longer than the deadline. What is given up may still land: it is counted when it does. */
  #bounded<T>(send: () => Promise<T>): Promise<T> {
    const { deadlineMs, isReady } = this.#options;
    if (!isReady()) return Promise.reject(new Error('the client has no connection'));
    return new Promise((resolve, reject) => {
      let givenUp = false;
      const timer = setTimeout(() => {
        givenUp = true;
        this.#timeouts++;
        reject(new StoreTimeoutError(deadlineMs));
      }, deadlineMs);
      const settled =
        <V>(go: (value: V) => void) =>
        (value: V): void => {
          clearTimeout(timer);
          if (!givenUp) go(value);
        };
      start(send).then((value) => {
        if (givenUp) this.#late++;
        settled(resolve)(value);
      }, settled(reject));
    });
  }
}

/** A client that throws rather than rejects is treated alike. */
async function start<T>(send: () => Promise<T>): Promise<T> {
  return send();
}

function isRecordFault(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^(ERR )?(WRONGTYPE|HEADGATE|TRYAGAIN)|@user_script: (WRONGTYPE|HEADGATE)/.test(error.message)
  );
}
