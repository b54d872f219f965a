import { StoreUnavailableError } from '../../base/errors.ts';
import { FairQueue } from '../../base/fair-queue.ts';
import { Tally } from '../../base/tally.ts';
import type { CircuitBreaker } from './circuit-breaker.ts';

/**
 * Most bytes that are under way at once, unless a single value is larger. Further values would only wait in a socket.
 */
const MAX_BYTES_UNDER_WAY = 262_144;
/** Slowest connection that is not taken for broken, in bytes per millisecond: 1 MiB per second. */
export const MIN_BYTES_PER_MS = 1_048_576 / 1_000;
/** Longest wait for the turn of a value, in milliseconds. */
const MAX_WAIT_MS = 2_000;

/** Options of {@link LargeValues}. */
export interface LargeValuesOptions {
  /** A separate deadline and circuit breaker, so that a slow value says nothing about the other commands. */
  readonly breaker: CircuitBreaker;
  /** Longest wait for an answer besides the time for the bytes, in milliseconds. */
  readonly deadlineMs: number;
  /** Most bytes that wait or are under way per scope. One value always fits. */
  readonly maxBytesPerScope: number;
  /** Called with the error of every call that was not sent. Must not throw. */
  readonly onError: ((error: unknown) => void) | undefined;
}

/** A call that waits for its turn. */
interface WaitingCall {
  readonly bytes: number;
  start(): void;
}

/**
 * Calls that carry a large value, over a connection that they share. A few are under way at once, the scopes take
 * turns, and each scope gets a budget. So one application can neither fill the connection nor block the values of
 * another.
 */
export class LargeValues {
  readonly #options: LargeValuesOptions;
  readonly #waiting = new FairQueue<WaitingCall>();
  /** Bytes that wait or are under way, per scope. */
  readonly #bytes = new Tally();
  #bytesUnderWay = 0;
  #refused = 0;

  constructor(options: LargeValuesOptions) {
    this.#options = options;
  }

  /** Bytes that wait or are under way now. */
  get bytes(): number {
    return this.#bytes.total;
  }

  /** Calls that were not sent, because the budget of their scope was used up or their turn did not come in time. */
  get refused(): number {
    return this.#refused;
  }

  /**
   * Sends a call when it is the turn of its scope.
   * @param bytes length of the value
   * @throws StoreTimeoutError, StoreUnavailableError
   */
  async run<T>(scope: string, bytes: number, send: () => Promise<T>): Promise<T> {
    const { breaker, deadlineMs, maxBytesPerScope } = this.#options;
    const ofScope = this.#bytes.of(scope);
    if (ofScope > 0 && ofScope + bytes > maxBytesPerScope) {
      throw this.#refuse(`${ofScope} bytes of large values of this scope are waiting`);
    }
    this.#bytes.add(scope, bytes);
    try {
      await this.#turn(scope, bytes);
    } catch (error) {
      this.#bytes.add(scope, -bytes);
      throw error;
    }
    let isSent = false;
    const end = (): void => {
      this.#bytesUnderWay -= bytes;
      this.#bytes.add(scope, -bytes);
      this.#startNext();
    };
    // A call that is given up is under way until its answer comes or the connection ends. So a server that is frozen
    // does not collect values in this process.
    const sending = (): Promise<T> => {
      isSent = true;
      const answer = send();
      answer.then(end, end);
      return answer;
    };
    try {
      return await breaker.run(sending, deadlineMs + Math.ceil(this.#bytesUnderWay / MIN_BYTES_PER_MS));
    } finally {
      if (!isSent) end();
    }
  }

  /** Resolves when the call may be sent; its bytes count as under way from then on. */
  #turn(scope: string, bytes: number): Promise<void> | undefined {
    if (this.#waiting.size === 0 && this.#hasRoomFor(bytes)) {
      this.#bytesUnderWay += bytes;
      return undefined;
    }
    if (this.#options.breaker.state === 'open') throw this.#refuse('the circuit breaker of large values is open');
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(scope, call);
        reject(this.#refuse(`the turn of a large value did not come within ${MAX_WAIT_MS} ms`));
        // The calls behind it can be smaller.
        this.#startNext();
      }, MAX_WAIT_MS);
      const call: WaitingCall = {
        bytes,
        start: () => {
          clearTimeout(timer);
          this.#bytesUnderWay += bytes;
          resolve();
        },
      };
      this.#waiting.push(scope, call);
    });
  }

  /** Starts the calls that are next, as long as there is room. */
  #startNext(): void {
    for (;;) {
      const call = this.#waiting.first;
      if (call === undefined || !this.#hasRoomFor(call.bytes)) return;
      this.#waiting.next();
      call.start();
    }
  }

  #hasRoomFor(bytes: number): boolean {
    return this.#bytesUnderWay === 0 || this.#bytesUnderWay + bytes <= MAX_BYTES_UNDER_WAY;
  }

  #refuse(reason: string): StoreUnavailableError {
    this.#refused++;
    const error = new StoreUnavailableError(reason, { sent: false });
    this.#options.onError?.(error);
    return error;
  }
}
