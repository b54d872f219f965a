import { claimName } from '../core/claim-id.ts';
import type { ClaimId } from '../core/ports.ts';
import type { Timers } from '../core/timers.ts';

/** Duplicates in this process that wait for an original. An original in the same process wakes them at once (I5). */
export class Waiters {
  readonly #byKey = new Map<string, Set<Waiter>>();

  constructor(private readonly timers: Timers) {}

  /** How many duplicates wait now. */
  get size(): number {
    let size = 0;
    for (const waiters of this.#byKey.values()) size += waiters.size;
    return size;
  }

  /** Adds a waiter. From now on it notices every {@link wake}, also one between two calls of its `wait`. */
  join(id: ClaimId): Waiter {
    const name = claimName(id);
    const waiters = this.#byKey.get(name) ?? new Set();
    this.#byKey.set(name, waiters);
    const waiter = new Waiter(this.timers, () => {
      waiters.delete(waiter);
      if (waiters.size === 0) this.#byKey.delete(name);
    });
    waiters.add(waiter);
    return waiter;
  }

  /** The claim of this key changed: every duplicate that waits for it looks again. */
  wake(id: ClaimId): void {
    if (this.#byKey.size === 0) return;
    for (const waiter of this.#byKey.get(claimName(id)) ?? []) waiter.wake();
  }

  wakeAll(): void {
    for (const waiters of this.#byKey.values()) for (const waiter of waiters) waiter.wake();
  }
}

/** One waiting duplicate. */
export class Waiter {
  #woken = false;
  #resume: (() => void) | undefined;

  constructor(
    private readonly timers: Timers,
    readonly leave: () => void,
  ) {}

  wake(): void {
    this.#woken = true;
    this.#resume?.();
  }

  /** Waits for {@link wake}, an abort, or `ms`. Returns at once if it was woken since the last wait. */
  async wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    if (!(this.#woken || signal?.aborted)) {
      await new Promise<void>((resolve) => {
        const cancel = this.timers.after(ms, resolve, false);
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
