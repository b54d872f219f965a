import { monotonicClock } from '../core/clock.ts';

/** A call to a store that did not answer yet. */
interface Call {
  readonly deadline: number;
  readonly onTimeout: () => void;
}

/** Calls to a store that may never answer. Each ends once: with an answer, or at its deadline. */
export class PendingCalls {
  readonly #timeoutMs: number;
  /** In the order of their deadlines, because all get the same time. */
  readonly #calls = new Set<Call>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  get size(): number {
    return this.#calls.size;
  }

  /** @returns a function that says that the store answered. It returns false after the deadline or a second answer */
  begin(onTimeout: () => void): () => boolean {
    const call: Call = { deadline: monotonicClock.now() + this.#timeoutMs, onTimeout };
    this.#calls.add(call);
    this.#timer ??= this.#startTimer(this.#timeoutMs);
    return () => this.#calls.delete(call);
  }

  /** Ends all calls without a word. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#calls.clear();
  }

  /** One timer serves all calls: most of them ended long before it fires. */
  #startTimer(ms: number): ReturnType<typeof setTimeout> {
    const timer = setTimeout(() => this.#onTimer(), ms);
    // Nobody waits for an answer, so it must not keep a process alive.
    (timer as { unref?(): void }).unref?.();
    return timer;
  }

  #onTimer(): void {
    this.#timer = undefined;
    const now = monotonicClock.now();
    for (const call of this.#calls) {
      if (call.deadline > now) {
        this.#timer = this.#startTimer(call.deadline - now);
        return;
      }
      this.#calls.delete(call);
      call.onTimeout();
    }
  }
}
