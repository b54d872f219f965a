import type { Slots } from '../limits/slots.ts';

/** A queue of jobs, as far as releases matter to it. */
export interface Waiter {
  /** A request in flight of its account, or of one of its groups, ended. */
  released(): void;
}

/** Tells queues of jobs that a request in flight ended in this process (S29). */
export class Releases {
  /** By the account or the group: the waiter that has waited longest is the first. */
  readonly #waiters = new Map<string, Set<Waiter>>();
  #stop: (() => void) | undefined;

  /** @param slots of the limiter */
  constructor(private readonly slots: () => Slots | undefined) {}

  /** Adds a waiter as the last one. */
  wait(account: string, waiter: Waiter): void {
    this.#stop ??= this.slots()?.onRelease((released) => this.#wake(released));
    const waiters = this.#waiters.get(account) ?? new Set();
    waiters.delete(waiter);
    this.#waiters.set(account, waiters.add(waiter));
  }

  leave(account: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(account);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiters.delete(account);
  }

  close(): void {
    this.#stop?.();
  }

  /** All are woken in the order of their waits, since the first may be bounded by its route as well. */
  #wake(account: string): void {
    for (const waiter of [...(this.#waiters.get(account) ?? [])]) waiter.released();
  }
}
