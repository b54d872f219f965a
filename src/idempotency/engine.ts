import type { ClaimStore } from '../core/ports.ts';
import { Background } from './background.ts';
import { Events, type IdempotencyEvent } from './events.ts';
import type { Timers } from './timers.ts';
import { Waiters } from './waiters.ts';

/** What every attempt of one `createIdempotency` shares. */
export class Engine {
  readonly store: ClaimStore;
  readonly timers: Timers;
  readonly events: Events;
  readonly background: Background;
  readonly waiters: Waiters;
  readonly #held = new Set<{ stopRenewing(): void }>();
  readonly #whenFree: (() => void)[] = [];
  /** Of this engine alone, made when asked for, since some platforms have nothing random while a module loads. */
  #name: string | undefined;
  #tokens = 0;
  #closed = false;

  constructor(store: ClaimStore, timers: Timers, onEvent: ((event: IdempotencyEvent) => void) | undefined) {
    this.store = store;
    this.timers = timers;
    this.events = new Events(onEvent);
    this.background = new Background(timers, this.events);
    this.waiters = new Waiters(timers);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** For one attempt, unlike any other anywhere: one random name and a number, since a random token each would cost more than the look-up. */
  nextToken(): string {
    this.#name ??= crypto.randomUUID();
    return `${this.#name}-${++this.#tokens}`;
  }

  /** Claims that are neither settled nor given back. */
  get held(): number {
    return this.#held.size;
  }

  hold(claim: { stopRenewing(): void }): void {
    this.#held.add(claim);
  }

  free(claim: { stopRenewing(): void }): void {
    this.#held.delete(claim);
    if (this.#held.size > 0 || this.#whenFree.length === 0) return;
    for (const resolve of this.#whenFree.splice(0)) resolve();
  }

  /** Resolves once no claim is held, and every command is acknowledged. */
  async idle(): Promise<void> {
    while (this.#held.size > 0 || this.background.pending > 0) {
      if (this.#held.size > 0) await new Promise<void>((resolve) => this.#whenFree.push(resolve));
      await this.background.empty();
    }
  }

  /** Nobody waits or claims any more; what runs may still be settled. */
  close(): void {
    this.#closed = true;
    this.waiters.wakeAll();
  }

  /** The end: no timer is left. */
  stop(): void {
    this.background.stop();
    for (const claim of this.#held) claim.stopRenewing();
    for (const resolve of this.#whenFree.splice(0)) resolve();
  }
}
