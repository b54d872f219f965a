import { claimName } from '../core/claim-id.ts';
import type { ClaimId } from '../core/ports.ts';
import type { Timers } from '../core/timers.ts';

interface Turn {
  readonly fingerprint: string;
  readonly ended: Promise<void>;
}

/** The result of a wait: it is the caller's turn until `end`, or the reason why it is not. */
export type TakenTurn =
  | { readonly kind: 'taken'; readonly leftMs: number; end(): void }
  | { readonly kind: 'mismatch'; readonly fingerprint: string }
  | { readonly kind: 'in_progress' | 'aborted' };

/**
 * The attempts of one key in this process follow each other. In the database they would wait too, but each of them with
 * a connection of the pool, so that the duplicates of one key could take them all.
 */
export class KeyTurns {
  readonly #turns = new Map<string, Turn>();
  readonly #timers: Timers;
  /** How many attempts wait now. */
  waiting = 0;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  async take(id: ClaimId, fingerprint: string, waitMs: number, signal?: AbortSignal): Promise<TakenTurn> {
    const name = claimName(id);
    const endsAt = this.#timers.now() + waitMs;
    for (;;) {
      if (signal?.aborted) return { kind: 'aborted' };
      const turn = this.#turns.get(name);
      const leftMs = endsAt - this.#timers.now();
      if (turn === undefined)
        return { kind: 'taken', leftMs: Math.max(0, leftMs), end: this.#begin(name, fingerprint) };
      if (turn.fingerprint !== fingerprint) return { kind: 'mismatch', fingerprint: turn.fingerprint };
      if (leftMs <= 0) return { kind: 'in_progress' };
      await this.#wait(turn.ended, leftMs, signal);
    }
  }

  #begin(name: string, fingerprint: string): () => void {
    let resolve = (): void => {};
    const ended = new Promise<void>((done) => {
      resolve = done;
    });
    this.#turns.set(name, { fingerprint, ended });
    return () => {
      if (this.#turns.get(name)?.ended === ended) this.#turns.delete(name);
      resolve();
    };
  }

  async #wait(ended: Promise<void>, ms: number, signal: AbortSignal | undefined): Promise<void> {
    this.waiting++;
    let stop = (): void => {};
    await new Promise<void>((resolve) => {
      const cancel = this.#timers.after(ms, resolve, false);
      stop = () => {
        cancel();
        signal?.removeEventListener('abort', stop);
        resolve();
      };
      signal?.addEventListener('abort', stop);
      void ended.then(stop);
    });
    stop();
    this.waiting--;
  }
}
