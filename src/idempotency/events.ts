import type { ClaimId } from '../core/ports.ts';
import type { Refusal } from './refusal.ts';

/** A command that a store was asked to carry out. */
export type ClaimCommandName = 'begin' | 'dispatch' | 'extend' | 'complete' | 'abandon';

/** What happened to a claim. */
export type IdempotencyEvent = ClaimId & Told;

export type Told =
  | {
      /** The key was claimed: its request may be executed. */
      readonly type: 'claimed';
      /** Taken over from an owner that had asked for dispatch. */
      readonly inherited: boolean;
    }
  /** An earlier outcome was given. */
  | { readonly type: 'replayed' }
  | { readonly type: 'refused'; readonly reason: Refusal['reason'] }
  /** A duplicate waited for the original (I5). Comes before what it led to. */
  | { readonly type: 'waited'; readonly waitedMs: number }
  /** Somebody who knows was asked about an orphan (I9); `error` where that failed. */
  | { readonly type: 'reconciled'; readonly answer: 'done' | 'not_done' | 'unknown'; readonly error?: unknown }
  | {
      /** The outcome is kept. */
      readonly type: 'completed';
      readonly status: string;
      /** False where it was too large, or could not be serialized (I7). */
      readonly valueKept: boolean;
      readonly error?: unknown;
    }
  /** Another outcome came first. */
  | { readonly type: 'superseded' }
  /** The key was given back. */
  | { readonly type: 'released' }
  /** The store said that the claim is not, or no longer, this attempt's. */
  | { readonly type: 'lost'; readonly command: ClaimCommandName }
  /** Its owner has come to no end within `maxRunMs`, and renews it no more: once its lease is over, retries find an orphan (I9). */
  | { readonly type: 'overdue'; readonly dispatched: boolean }
  /** The store could not be asked, and nothing was executed (I12). */
  | { readonly type: 'unavailable'; readonly command: ClaimCommandName; readonly error: unknown }
  /** The store could not be asked, and the request is executed without protection (I12). */
  | { readonly type: 'bypassed'; readonly error: unknown }
  /** A command is tried again in the background until it is acknowledged. */
  | {
      readonly type: 'retrying';
      readonly command: ClaimCommandName;
      /** Tries that failed. */
      readonly tries: number;
      readonly error: unknown;
    }
  /** A command in the background was never acknowledged, and does not matter any more: its record is over. */
  | { readonly type: 'given_up'; readonly command: ClaimCommandName };

/** Tells a listener; it cannot break a request. */
export class Events {
  readonly #onEvent: ((event: IdempotencyEvent) => void) | undefined;

  constructor(onEvent: ((event: IdempotencyEvent) => void) | undefined) {
    this.#onEvent = onEvent;
  }

  /** Whether anybody listens; an event that nobody hears need not be made. */
  get heard(): boolean {
    return this.#onEvent !== undefined;
  }

  emit(event: IdempotencyEvent): void {
    try {
      this.#onEvent?.(event);
    } catch (error) {
      // A listener's fault is the program's, not the request's: it surfaces where uncaught errors do.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
