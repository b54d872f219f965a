import { OptionError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type { KeptResult } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import type { Timers } from '../core/timers.ts';
import type { Claim, ClaimCompletion, ClaimDispatch, ClaimRelease } from '../idempotency/claim.ts';
import type { ClaimEvent } from '../idempotency/events.ts';
import type { NoteOptions } from '../idempotency/note.ts';
import { boundedResult } from '../idempotency/outcome.ts';
import { RolledBackError } from '../idempotency/rolled-back.ts';
import type { ClaimSettings } from '../idempotency/settings.ts';
import { isRefused } from './failures.ts';
import type { CommitResult, OpenTransaction } from './open-transaction.ts';

/** The parts of {@link TransactionalClaim}. */
export interface ClaimParts {
  readonly id: ClaimId;
  readonly fingerprint: string;
  readonly settings: ClaimSettings;
  readonly timers: Timers;
  readonly log: Logger;
  readonly emit: (event: ClaimEvent) => void;
  /** Finds out what became of a commit whose answer was lost. Never rejects. */
  readonly lookUp: () => Promise<CommitResult | { readonly kind: 'superseded'; readonly result: KeptResult }>;
  /** Called once, when the transaction is over. */
  readonly onEnd: (isCommitted: boolean) => void;
}

const OK: ClaimDispatch = { kind: 'ok' };
const LOST = { kind: 'lost' } as const;
const ENDED_BY_HANDLER =
  'headgate: a handler committed the transaction of its idempotency key itself, so its answer was stored separately';

/** A claim in an open transaction. It has no lease: if its process dies, the transaction is rolled back. */
export class TransactionalClaim implements Claim {
  readonly generation = 1;
  readonly inherited = false;
  readonly dispatched = true;
  readonly #opened: OpenTransaction;
  readonly #parts: ClaimParts;
  readonly #controller = new AbortController();
  readonly #cancelOverdue: () => void;
  #completing: Promise<ClaimCompletion> | undefined;
  #overdue: RolledBackError | undefined;
  #hasEnded = false;

  constructor(opened: OpenTransaction, parts: ClaimParts) {
    this.#opened = opened;
    this.#parts = parts;
    const { timers, settings } = parts;
    this.#cancelOverdue = timers.after(settings.maxRunMs, () => this.#stopAsOverdue(settings.maxRunMs), true);
  }

  get scope(): string {
    return this.#parts.id.scope;
  }

  get key(): string {
    return this.#parts.id.key;
  }

  get fingerprint(): string {
    return this.#parts.fingerprint;
  }

  get transaction(): object {
    return this.#opened.transaction;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** There is nothing to record: the effect is in the transaction. */
  async dispatch(note?: unknown): Promise<ClaimDispatch> {
    if (note !== undefined) this.noteOutcome();
    return this.#hasEnded ? LOST : OK;
  }

  noteOutcome(): void {
    throw new OptionError('note', undefined, 'must not be given: write the rows in the transaction', 'a note');
  }

  async complete(result: KeptResult, { note }: NoteOptions = {}): Promise<ClaimCompletion> {
    if (note !== undefined) this.noteOutcome();
    this.#completing ??= this.#complete(result);
    return this.#completing;
  }

  async abandon({ note }: NoteOptions = {}): Promise<ClaimRelease> {
    if (note !== undefined) this.noteOutcome();
    if (!(await this.#rollBack())) return LOST;
    this.#parts.emit({ type: 'released' });
    return { kind: 'released' };
  }

  async leave(): Promise<void> {
    await this.#rollBack();
  }

  async #complete(result: KeptResult): Promise<ClaimCompletion> {
    if (this.#overdue !== undefined) return { kind: 'undone', error: this.#overdue, isRefused: true };
    if (!this.#end()) return LOST;
    const { settings, log, onEnd } = this.#parts;
    const bounded = boundedResult(result, settings.maxKeptBytes);
    let commit: Awaited<ReturnType<ClaimParts['lookUp']>> = await this.#opened.commit(bounded);
    if (commit.kind === 'unknown') commit = await this.#parts.lookUp();
    onEnd(commit.kind === 'committed');
    switch (commit.kind) {
      case 'committed':
        if (commit.ended) log(ENDED_BY_HANDLER, undefined);
        this.#parts.emit({ type: 'completed', status: bounded.status, valueKept: bounded.value !== undefined });
        return { kind: 'kept' };
      case 'superseded':
        this.#parts.emit({ type: 'superseded' });
        return commit;
      case 'rolled_back': {
        const { error } = commit;
        this.#parts.emit({ type: 'unavailable', command: 'complete', error });
        log('headgate: the transaction of an idempotency key was rolled back', error);
        return { kind: 'undone', error, isRefused: isRefused(error) };
      }
      case 'unknown': {
        const { error } = commit;
        this.#parts.emit({ type: 'unavailable', command: 'complete', error });
        log('headgate: it is unknown whether the transaction of an idempotency key was committed', error);
        return { kind: 'pending', answer: 'unavailable', error };
      }
    }
  }

  #stopAsOverdue(maxRunMs: number): void {
    if (this.#hasEnded) return;
    this.#overdue = new RolledBackError(`it took longer than ${maxRunMs} ms (maxRunMs)`);
    this.#parts.emit({ type: 'overdue', dispatched: true });
    this.#controller.abort(this.#overdue);
    void this.#rollBack(true);
  }

  /** Returns false if the claim had already ended. */
  async #rollBack(isUsed = false): Promise<boolean> {
    if (!this.#end()) return false;
    await this.#opened.rollBack(isUsed);
    this.#parts.onEnd(false);
    return true;
  }

  #end(): boolean {
    const wasOpen = !this.#hasEnded;
    this.#hasEnded = true;
    this.#cancelOverdue();
    return wasOpen;
  }
}
