import type { CompleteReply, HeldReply, KeptResult } from '../core/claim.ts';
import { HeadgateError } from '../core/errors.ts';
import { isPromise } from '../core/maybe-promise.ts';
import type { ClaimId, MaybePromise } from '../core/ports.ts';
import type { Attempt, Begun, Unavailable } from './attempt.ts';
import { fitsIn } from './bytes.ts';

/** What became of an outcome, and so what its caller is to be told. */
export type Completion =
  /** It is what every retry gets. The caller gets it too. */
  | { readonly kind: 'kept' }
  /** Another outcome came first: the caller gets that one, never its own. */
  | { readonly kind: 'superseded'; readonly result: KeptResult }
  /** The key is another request's by now, as after a loss of the store's data. The caller gets its own outcome, which nobody else will. */
  | { readonly kind: 'lost' }
  | {
      /** Not acknowledged yet: tried again in the background until it is. */
      readonly kind: 'pending';
      /**
       * `own`: the caller gets its own outcome. `unavailable`: it is told to retry (503), since the outcome of another execution may win
       * (I12: `reexecute` and `reconcile`).
       */
      readonly answer: 'own' | 'unavailable';
      readonly error: unknown;
    };

/** What became of a claim that was given back. */
export type Release =
  | { readonly kind: 'released' }
  /** It was not this attempt's any more. */
  | { readonly kind: 'lost' }
  /** Somebody else's outcome is kept. */
  | { readonly kind: 'settled'; readonly result: KeptResult }
  /** Not acknowledged yet: tried again in the background until it is. */
  | { readonly kind: 'pending'; readonly error: unknown };

/** Whether the effect may happen: after `ok` only. Of a claim that was not `ok` nothing is left to do. */
export type Dispatch = HeldReply | Unavailable;

/**
 * A key held by one attempt. It renews its lease until {@link Claim.complete} or {@link Claim.abandon}, of which exactly one is to be
 * called, unless {@link Claim.dispatch} said anything but `ok`; for `maxRunMs` at most.
 */
export interface Claim extends ClaimId {
  readonly fingerprint: string;
  /** One more at every claim of the key: a fence for a downstream that takes one. */
  readonly generation: number;
  /** Taken over from an owner that had asked for dispatch: the effect may have happened already. */
  readonly inherited: boolean;
  /** Whether this owner has asked for dispatch, and was told `ok`. */
  readonly dispatched: boolean;
  /**
   * Fires when the claim is lost before dispatch. After it, under `reexecute` and `reconcile`, when somebody else may have taken it over. And, in
   * any case, when `maxRunMs` are over. Neither of the latter changes anything about {@link Claim.complete}.
   */
  readonly signal: AbortSignal;
  /** To be awaited just before the effect. At once where it was done with the claim. Never rejects. */
  dispatch(): Promise<Dispatch>;
  /**
   * Keeps the outcome, success or error (I6). Resolves after the first try; without an acknowledgement it goes on in the background. A value
   * over `maxKeptBytes` is left out (I7). Never rejects; a second call does nothing and says what the first said.
   */
  complete(result: KeptResult): Promise<Completion>;
  /**
   * Gives the key back: nothing was dispatched, or its effect is *known* not to have happened, and not to happen any more. Resolves after
   * the first try. Never rejects; after {@link Claim.complete} it does nothing.
   */
  abandon(): Promise<Release>;
  /** Says nothing, and renews no more: where the outcome is unknown, and another owner's is to count. Rarely right. */
  leave(): void;
}

/** The lease of a claim is over or somebody else's, or is to be renewed no more. */
class ClaimLostError extends HeadgateError {
  constructor() {
    super(
      'claim_lost',
      'the claim on the idempotency key was lost, or held for too long: another attempt may own it by now',
    );
  }
}

const KEPT = { kind: 'kept' } as const;
const OK = { kind: 'ok' } as const;
const LOST = { kind: 'lost' } as const;
/** What a dispatch is told that comes after the claim was settled or given back. */
const TOO_LATE: Promise<Dispatch> = /* @__PURE__ */ Promise.resolve(LOST);

/** A lease is renewed when a third of it is over, and where that was not acknowledged, again after a twelfth. */
const PARTS = 3;
const RETRY_PARTS = 12;

export class HeldClaim implements Claim {
  readonly #attempt: Attempt;
  readonly generation: number;
  readonly inherited: boolean;
  #dispatched: boolean;
  #lost = false;
  #controller: AbortController | undefined;
  #dispatching: Promise<Dispatch> | undefined;
  #completing: Promise<Completion> | undefined;
  #over = false;
  readonly #claimedAt: number;
  /** When the last command that renewed the lease was sent. */
  #renewedAt: number;
  #cancelRenewal: (() => void) | undefined;

  constructor(attempt: Attempt, { generation, inherited, dispatched, sentAt }: Begun) {
    this.#attempt = attempt;
    this.generation = generation;
    this.inherited = inherited;
    this.#claimedAt = sentAt;
    this.#renewedAt = sentAt;
    // Marked, but heard too late to be sure of owning it still: to be asked for again.
    this.#dispatched = dispatched && !(this.#mayBeTakenOver() && this.#leaseIsOver());
    attempt.engine.hold(this);
    this.#renewIn(PARTS);
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

  get lost(): boolean {
    return this.#lost;
  }

  get signal(): AbortSignal {
    // Made when asked for: most operations do not.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#lost) this.#controller.abort(new ClaimLostError());
    }
    return this.#controller.signal;
  }

  dispatch(): Promise<Dispatch> {
    this.#dispatching ??= this.#dispatch();
    return this.#dispatching;
  }

  complete(result: KeptResult): Promise<Completion> {
    this.#completing ??= this.#complete(result);
    return this.#completing;
  }

  async abandon(): Promise<Release> {
    this.#dispatching ??= TOO_LATE;
    // Whose claim it is, and whether it is given back already, its reply decides.
    await this.#dispatching;
    if (!this.#end()) return LOST;
    const attempt = this.#attempt;
    try {
      return await attempt.abandon(this.generation);
    } catch (error) {
      attempt.abandonLater(this.generation, this.#dispatched || this.inherited || attempt.fused);
      return { kind: 'pending', error };
    } finally {
      attempt.engine.free(this);
    }
  }

  leave(): void {
    if (this.#end()) this.#attempt.engine.free(this);
  }

  stopRenewing(): void {
    this.#cancelRenewal?.();
    this.#cancelRenewal = undefined;
  }

  async #dispatch(): Promise<Dispatch> {
    if (this.#over) return LOST;
    if (this.#dispatched) return OK;
    const attempt = this.#attempt;
    const reply = await attempt.dispatch(this.generation);
    if (reply.kind === 'ok') {
      this.#dispatched = true;
      return OK;
    }
    if (reply.kind === 'unavailable') attempt.tellUnavailable('dispatch', reply.error);
    else attempt.tellLost('dispatch');
    this.#lose();
    return reply;
  }

  async #complete(result: KeptResult): Promise<Completion> {
    const dispatching = this.#dispatching;
    this.#dispatching ??= TOO_LATE;
    if (dispatching !== undefined) await dispatching;
    if (!this.#end()) return LOST;
    const attempt = this.#attempt;
    const { maxKeptBytes, onOrphan } = attempt.settings;
    const { status, value } = result;
    const kept = value === undefined || fitsIn(value, maxKeptBytes) ? result : { status, value: undefined };
    try {
      const replying: MaybePromise<CompleteReply> = attempt.complete(kept);
      const reply = isPromise(replying) ? await replying : replying;
      return reply.kind === 'ok' ? KEPT : reply;
    } catch (error) {
      attempt.completeLater(kept);
      return { kind: 'pending', answer: onOrphan === 'reject' ? 'own' : 'unavailable', error };
    } finally {
      attempt.engine.free(this);
    }
  }

  #renewIn(parts: number): void {
    const { engine, settings } = this.#attempt;
    const ms = Math.max(1, Math.floor(settings.leaseMs / parts));
    this.#cancelRenewal = engine.timers.after(ms, () => void this.#renew(), true);
  }

  async #renew(): Promise<void> {
    const attempt = this.#attempt;
    const sentAt = attempt.engine.timers.now();
    if (sentAt - this.#claimedAt >= attempt.settings.maxRunMs) return this.#giveUp();
    let reply: HeldReply | undefined;
    try {
      reply = await attempt.extend(this.generation);
    } catch {
      // Nothing is known: asked again, sooner.
    }
    if (this.#over) return;
    if (reply?.kind === 'ok') this.#renewedAt = sentAt;
    const isSettling = this.#dispatching !== undefined && !this.#dispatched;
    // While a dispatch is under way its own reply says more.
    if (reply === undefined || reply.kind === 'ok' || isSettling) {
      if (this.#dispatched && this.#mayBeTakenOver() && this.#leaseIsOver()) this.#fire();
      this.#renewIn(reply === undefined ? RETRY_PARTS : PARTS);
      return;
    }
    attempt.tellLost('extend');
    if (!this.#dispatched) this.#lose();
    else if (this.#mayBeTakenOver()) this.#fire();
  }

  /** Nobody can wait for it any longer. Should it come to an end after all, its outcome is still taken. */
  #giveUp(): void {
    const { engine, id } = this.#attempt;
    if (engine.events.heard) engine.events.emit({ ...id, type: 'overdue', dispatched: this.#dispatched });
    this.stopRenewing();
    engine.free(this);
    this.#fire();
  }

  /** Nothing was dispatched, and nothing may be. */
  #lose(): void {
    if (this.#end()) this.#attempt.engine.free(this);
    this.#fire();
  }

  #fire(): void {
    this.#lost = true;
    this.#controller?.abort(new ClaimLostError());
  }

  /** Returns whether it was not over already. */
  #end(): boolean {
    const wasOver = this.#over;
    this.#over = true;
    this.stopRenewing();
    return !wasOver;
  }

  #mayBeTakenOver(): boolean {
    return this.#attempt.settings.onOrphan !== 'reject';
  }

  #leaseIsOver(): boolean {
    const { engine, settings } = this.#attempt;
    return engine.timers.now() - this.#renewedAt >= settings.leaseMs;
  }
}
