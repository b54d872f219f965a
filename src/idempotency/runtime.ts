import { Emitter } from '../base/emitter.ts';
import type { Logger } from '../base/logger.ts';
import type { ClaimId, ClaimStore } from '../core/ports.ts';
import type { Timers } from '../core/timers.ts';
import type { ClaimEvent, IdempotencyEvent } from './events.ts';
import { RetryQueue } from './retry-queue.ts';
import { Waiters } from './waiters.ts';

const FORGOTTEN = 'its scope has no room for a new idempotency key; a retry of the forgotten request is executed again';

/** A claim whose lease is renewed until it ends. */
interface Renewing {
  stopRenewing(): void;
}

/** What all attempts of one `createIdempotency()` share: store, timers, events, background commands, held claims. */
export class Runtime {
  readonly retries: RetryQueue;
  readonly waiters: Waiters;
  readonly #events: Emitter<IdempotencyEvent>;
  readonly #heldClaims = new Set<Renewing>();
  readonly #releaseListeners: (() => void)[] = [];
  /** Unique. Created on first use, because some platforms offer no random numbers while a module loads. */
  #name: string | undefined;
  #tokens = 0;
  #closed = false;
  readonly #stopListening: (() => void) | undefined;

  constructor(
    readonly store: ClaimStore,
    readonly timers: Timers,
    onEvent: ((event: IdempotencyEvent) => void) | undefined,
    log: Logger,
  ) {
    this.#events = new Emitter(onEvent, log);
    this.retries = new RetryQueue(timers, this.#events);
    this.waiters = new Waiters(timers);
    this.#stopListening = store.onForgotten?.((id) => {
      // Said in any case: a retry would be executed again. The key is left out, because it may be a secret.
      log('headgate: an unknown outcome was forgotten', new Error(FORGOTTEN));
      this.emit(id, { type: 'forgotten' });
    });
  }

  /** True after {@link close}: no new claims, and duplicates stop waiting. */
  get closed(): boolean {
    return this.#closed;
  }

  get hasListener(): boolean {
    return this.#events.hasListener;
  }

  emit(id: ClaimId, event: ClaimEvent): void {
    if (this.#events.hasListener) this.#events.emit({ scope: id.scope, key: id.key, ...event });
  }

  /** Unique everywhere: name and number. A random token per attempt would cost more than the look-up. */
  nextToken(): string {
    this.#name ??= crypto.randomUUID();
    return `${this.#name}-${++this.#tokens}`;
  }

  /** How many claims are neither completed nor released. */
  get heldClaims(): number {
    return this.#heldClaims.size;
  }

  addClaim(claim: Renewing): void {
    this.#heldClaims.add(claim);
  }

  removeClaim(claim: Renewing): void {
    this.#heldClaims.delete(claim);
    if (this.#heldClaims.size > 0 || this.#releaseListeners.length === 0) return;
    for (const resolve of this.#releaseListeners.splice(0)) resolve();
  }

  /** Resolves when no claim is held and every background command is acknowledged. */
  async idle(): Promise<void> {
    while (this.#heldClaims.size > 0 || this.retries.size > 0) {
      if (this.#heldClaims.size > 0) await new Promise<void>((resolve) => this.#releaseListeners.push(resolve));
      await this.retries.whenEmpty();
    }
  }

  /** Ends all waiting and refuses new claims. Running operations may still complete. */
  close(): void {
    this.#closed = true;
    this.waiters.wakeAll();
  }

  /** Cancels every timer. */
  stop(): void {
    this.#stopListening?.();
    this.retries.stop();
    for (const claim of this.#heldClaims) claim.stopRenewing();
    for (const resolve of this.#releaseListeners.splice(0)) resolve();
  }
}
