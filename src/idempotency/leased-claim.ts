import { HeadgateError, isHeadgateError } from '../base/errors.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { CompleteReply, HeldReply, KeptResult, NotedStep } from '../core/claim.ts';
import type { Attempt, NewClaim } from './attempt.ts';
import type { Claim, ClaimCompletion, ClaimDispatch, ClaimRelease } from './claim.ts';
import { encodeNote, type NoteOptions, refuse } from './note.ts';
import { boundedResult } from './outcome.ts';

/** The reason of {@link Claim.signal}. */
class ClaimLostError extends HeadgateError {
  override readonly name = 'ClaimLostError';

  constructor() {
    super(
      'claim_lost',
      'the claim on the idempotency key was lost, or its owner took too long: another attempt may own it now',
    );
  }
}

const KEPT = { kind: 'kept' } as const;
const OK = { kind: 'ok' } as const;
const LOST = { kind: 'lost' } as const;
/** Result of a dispatch that was requested after `complete` or `abandon`. */
const DISPATCH_REFUSED: Promise<ClaimDispatch> = /* @__PURE__ */ Promise.resolve(LOST);

/** The lease is renewed after a third of it, and after a twelfth if the last renewal failed. */
const RENEWALS_PER_LEASE = 3;
const RETRIES_PER_LEASE = 12;

/** A {@link Claim} that renews its lease. */
export class LeasedClaim implements Claim {
  readonly #attempt: Attempt;
  readonly generation: number;
  readonly inherited: boolean;
  #dispatched: boolean;
  #isLost = false;
  #controller: AbortController | undefined;
  #dispatching: Promise<ClaimDispatch> | undefined;
  #completing: Promise<ClaimCompletion> | undefined;
  /** Notes as JSON. */
  #dispatchNote: string | undefined;
  #outcomeNote: string | undefined;
  #hasEnded = false;
  readonly #claimedAt: number;
  /** When the last successful renewal was sent. */
  #renewedAt: number;
  #cancelRenewal: (() => void) | undefined;

  constructor(attempt: Attempt, { generation, inherited, dispatched, sentAt }: NewClaim) {
    this.#attempt = attempt;
    this.generation = generation;
    this.inherited = inherited;
    this.#claimedAt = sentAt;
    this.#renewedAt = sentAt;
    // If the reply took longer than the lease, another attempt may own the claim: dispatch must be requested again.
    this.#dispatched = dispatched && !(this.#mayBeTakenOver() && this.#leaseHasExpired());
    attempt.runtime.addClaim(this);
    this.#scheduleRenewal(RENEWALS_PER_LEASE);
  }

  get scope(): string {
    return this.#attempt.id.scope;
  }

  get key(): string {
    return this.#attempt.id.key;
  }

  get fingerprint(): string {
    return this.#attempt.fingerprint;
  }

  get dispatched(): boolean {
    return this.#dispatched;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  get signal(): AbortSignal {
    // Created on first use, because most operations never read it.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isLost) this.#controller.abort(new ClaimLostError());
    }
    return this.#controller.signal;
  }

  dispatch(note?: unknown): Promise<ClaimDispatch> {
    if (note !== undefined && this.#dispatching === undefined) return this.#dispatchWith(note);
    this.#dispatching ??= this.#dispatch();
    return this.#dispatching;
  }

  async #dispatchWith(note: unknown): Promise<ClaimDispatch> {
    if (this.#attempt.dispatchOnClaim) throw refuse("needs dispatch: 'explicit', as the key was dispatched already");
    this.#dispatchNote = this.#encoded('dispatch', note);
    return this.dispatch();
  }

  noteOutcome(note: unknown): void {
    if (this.#hasEnded || this.#completing !== undefined) throw refuse('must be set before the outcome is stored');
    this.#outcomeNote = this.#encoded('complete', note);
  }

  complete(result: KeptResult, options?: NoteOptions): Promise<ClaimCompletion> {
    if (options?.note !== undefined && this.#completing === undefined) return this.#completeWith(result, options.note);
    this.#completing ??= this.#complete(result);
    return this.#completing;
  }

  async #completeWith(result: KeptResult, note: unknown): Promise<ClaimCompletion> {
    this.#outcomeNote = this.#encoded('complete', note);
    return this.complete(result);
  }

  async abandon({ note }: NoteOptions = {}): Promise<ClaimRelease> {
    // Without a note of its own, it undoes the rows of the dispatch.
    const encoded = this.#encoded('abandon', note) ?? this.#undoNote(this.#outcomeNote ?? this.#dispatchNote);
    this.#dispatching ??= DISPATCH_REFUSED;
    // The reply to a running dispatch decides whether the claim is still held, or already lost or released.
    await this.#dispatching;
    if (!this.#end()) return LOST;
    const attempt = this.#attempt;
    try {
      return await attempt.abandon(this.generation, encoded);
    } catch (error) {
      const mayBeDispatched = this.#dispatched || this.inherited || attempt.dispatchOnClaim;
      attempt.abandonInBackground(this.generation, mayBeDispatched, encoded);
      return { kind: 'pending', error };
    } finally {
      attempt.runtime.removeClaim(this);
    }
  }

  async leave(): Promise<void> {
    if (this.#dispatching !== undefined) await this.#dispatching.catch(() => LOST);
    if (!this.#end()) return;
    const attempt = this.#attempt;
    try {
      if (this.#dispatched) await attempt.endLease(this.generation);
    } catch {
      // Then the lease expires by itself.
    } finally {
      attempt.runtime.removeClaim(this);
    }
  }

  stopRenewing(): void {
    this.#cancelRenewal?.();
    this.#cancelRenewal = undefined;
  }

  async #dispatch(): Promise<ClaimDispatch> {
    if (this.#hasEnded) return LOST;
    if (this.#dispatched) return OK;
    const attempt = this.#attempt;
    const note = this.#dispatchNote;
    const reply = await attempt.dispatch(this.generation, note, this.#undoNote(note));
    if (reply.kind === 'ok') {
      this.#dispatched = true;
      return OK;
    }
    if (reply.kind === 'unavailable') attempt.emit({ type: 'unavailable', command: 'dispatch', error: reply.error });
    else attempt.emit({ type: 'lost', command: 'dispatch' });
    this.#lose();
    return reply;
  }

  async #complete(result: KeptResult): Promise<ClaimCompletion> {
    const dispatching = this.#dispatching;
    this.#dispatching ??= DISPATCH_REFUSED;
    if (dispatching !== undefined) await dispatching;
    if (!this.#end()) return LOST;
    const attempt = this.#attempt;
    const { maxKeptBytes, onOrphan } = attempt.settings;
    const stored = boundedResult(result, maxKeptBytes);
    const note = this.#outcomeNote;
    try {
      const replying: MaybePromise<CompleteReply> = attempt.complete(stored, note);
      const reply = isPromise(replying) ? await replying : replying;
      return reply.kind === 'ok' ? KEPT : reply;
    } catch (error) {
      // Another outcome is stored, and only that one may be shown.
      if (isHeadgateError(error, 'result_unavailable')) return { kind: 'pending', answer: 'unavailable', error };
      attempt.completeInBackground(stored, note);
      return { kind: 'pending', answer: onOrphan === 'reject' ? 'own' : 'unavailable', error };
    } finally {
      attempt.runtime.removeClaim(this);
    }
  }

  #encoded(step: NotedStep, note: unknown): string | undefined {
    return encodeNote(this.#attempt.runtime.store, step, this.#attempt.id, note);
  }

  /** The note of a release, if the store writes rows then. */
  #undoNote(note: string | undefined): string | undefined {
    return this.#attempt.runtime.store.notes?.includes('abandon') ? note : undefined;
  }

  #scheduleRenewal(timesPerLease: number): void {
    const { runtime, settings } = this.#attempt;
    const delayMs = Math.max(1, Math.floor(settings.leaseMs / timesPerLease));
    this.#cancelRenewal = runtime.timers.after(delayMs, () => void this.#renew(), true);
  }

  async #renew(): Promise<void> {
    const attempt = this.#attempt;
    const sentAt = attempt.runtime.timers.now();
    if (sentAt - this.#claimedAt >= attempt.settings.maxRunMs) return this.#stopAsOverdue();
    let reply: HeldReply | undefined;
    try {
      reply = await attempt.extend(this.generation);
    } catch {
      // Whether the lease was renewed is unknown: the renewal is repeated, sooner.
    }
    if (this.#hasEnded) return;
    if (reply?.kind === 'ok') this.#renewedAt = sentAt;
    const isDispatching = this.#dispatching !== undefined && !this.#dispatched;
    // While a dispatch is running, its own reply is more precise than this one.
    if (reply === undefined || reply.kind === 'ok' || isDispatching) {
      if (this.#dispatched && this.#mayBeTakenOver() && this.#leaseHasExpired()) this.#abortSignal();
      this.#scheduleRenewal(reply === undefined ? RETRIES_PER_LEASE : RENEWALS_PER_LEASE);
      return;
    }
    attempt.emit({ type: 'lost', command: 'extend' });
    if (!this.#dispatched) this.#lose();
    else if (this.#mayBeTakenOver()) this.#abortSignal();
  }

  /** Retries must not wait longer than `maxRunMs` for this owner. If it finishes later, its outcome still counts. */
  #stopAsOverdue(): void {
    this.#attempt.emit({ type: 'overdue', dispatched: this.#dispatched });
    this.stopRenewing();
    this.#attempt.runtime.removeClaim(this);
    this.#abortSignal();
  }

  /** Ends a claim that was never dispatched, and must not be any more. */
  #lose(): void {
    if (this.#end()) this.#attempt.runtime.removeClaim(this);
    this.#abortSignal();
  }

  #abortSignal(): void {
    this.#isLost = true;
    this.#controller?.abort(new ClaimLostError());
  }

  /** Returns false if the claim had already ended. */
  #end(): boolean {
    const wasOpen = !this.#hasEnded;
    this.#hasEnded = true;
    this.stopRenewing();
    return wasOpen;
  }

  #mayBeTakenOver(): boolean {
    return this.#attempt.settings.onOrphan !== 'reject';
  }

  #leaseHasExpired(): boolean {
    const { runtime, settings } = this.#attempt;
    return runtime.timers.now() - this.#renewedAt >= settings.leaseMs;
  }
}
