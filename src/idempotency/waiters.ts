import { claimName } from '../core/claim-id.ts';
import type { ClaimId } from '../core/ports.ts';
import type { Timers } from './timers.ts';

/** Duplicates of this process that wait for an original, so that one that is here too can wake them at once (I5). */
export class Waiters {
  readonly #timers: Timers;
  readonly #byKey = new Map<string, Set<Waiter>>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  /** Those who wait now. */
  get size(): number {
    let size = 0;
    for (const waiters of this.#byKey.values()) size += waiters.size;
    return size;
  }

  /** From now on every {@link wake} is heard, also one between two waits. */
  join(id: ClaimId): Waiter {
    const name = claimName(id);
    const others = this.#byKey.get(name) ?? new Set();
    this.#byKey.set(name, others);
    const waiter = new Waiter(this.#timers, () => {
      others.delete(waiter);
      if (others.size === 0) this.#byKey.delete(name);
    });
    others.add(waiter);
    return waiter;
  }

  /** Something happened to the key: everybody who waits for it looks again. */
  wake(id: ClaimId): void {
    if (this.#byKey.size === 0) return;
    for (const waiter of this.#byKey.get(claimName(id)) ?? []) waiter.wake();
  }

  wakeAll(): void {
    for (const waiters of this.#byKey.values()) for (const waiter of waiters) waiter.wake();
  }
}

/** One who waits. */
export class Waiter {
  readonly #timers: Timers;
  readonly leave: () => void;
  #woken = false;
  #resume: (() => void) | undefined;

  constructor(timers: Timers, leave: () => void) {
    this.#timers = timers;
    this.leave = leave;
  }

  wake(): void {
    this.#woken = true;
    this.#resume?.();
  }

  /** Until woken, at most `ms`; at once where it was woken since the last time. Ends when `signal` fires. */
  async wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (!(this.#woken || signal?.aborted)) {
      await new Promise<void>((resolve) => {
        const cancel = this.#timers.after(ms, resolve, false);
        this.#resume = () => {
          cancel();
          resolve();
        };
        signal?.addEventListener('abort', this.#resume);
      });
      if (this.#resume !== undefined) signal?.removeEventListener('abort', this.#resume);
      this.#resume = undefined;
    }
    this.#woken = false;
  }
}
