import { ClosedError, isHeadgateError, type ScopeFullError } from '../base/errors.ts';
import { after, isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import type { KeptResult } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import { Attempt, type BeginResult } from './attempt.ts';
import type { Claim } from './claim.ts';
import type { ClaimEvent } from './events.ts';
import { LeasedClaim } from './leased-claim.ts';
import { askReconcile, type Reconcile } from './reconcile.ts';
import type { Refused, Unavailable } from './refusal.ts';
import type { Runtime } from './runtime.ts';
import type { ClaimSettings, SettingsInput } from './settings.ts';
import type { Waiter } from './waiters.ts';

/** The key to claim, and how. */
export interface OpenRequest extends ClaimId, SettingsInput {
  /** Fingerprint of the request: equal for equal requests only (I3). */
  readonly fingerprint: string;
  /**
   * `automatic`: the command that makes the claim also records the dispatch, if that is safe.
   * `explicit`: only {@link Claim.dispatch} records it.
   */
  readonly dispatch: 'explicit' | 'automatic';
  /** Required if `onOrphan` is `reconcile`. */
  readonly reconcile?: Reconcile<KeptResult> | undefined;
  /** Aborted when the caller has gone away: ends the wait for an original. */
  readonly signal?: AbortSignal | undefined;
}

/** Result of `open`. */
export type OpenedClaim =
  /** The caller must execute, and use the claim as {@link Claim} describes. */
  | { readonly kind: 'claimed'; readonly claim: Claim }
  | { readonly kind: 'replay'; readonly result: KeptResult }
  | Refused
  /** The caller must not execute (I12). */
  | Unavailable
  /** The caller may execute without any protection (I12). */
  | { readonly kind: 'bypassed'; readonly error: unknown };

/** Pause between two looks at an original. It doubles after each look, up to the maximum. */
const FIRST_PAUSE_MS = 25;
const MAX_PAUSE_MS = 500;
/** `retryAfterMs` of a duplicate that stops waiting, unless the lease ends earlier. */
const RETRY_AFTER_MS = 1_000;

const ABORTED = { kind: 'aborted' } as const;

type InProgress = Extract<BeginResult, { kind: 'in_progress' }>;

/** Claims the key, waits for the original's outcome, or returns why neither is possible. Never throws or rejects. */
export function open(runtime: Runtime, request: OpenRequest, settings: ClaimSettings): MaybePromise<OpenedClaim> {
  const { scope, key, fingerprint, dispatch, signal, reconcile } = request;
  const attempt = new Attempt(runtime, { scope, key }, fingerprint, settings, dispatch === 'automatic');
  const opening = new OpenCall(attempt, signal, reconcile).run();
  if (!runtime.hasListener) return opening;
  return after(opening, (opened) => {
    attempt.emit(eventOf(opened));
    return opened;
  });
}

/** One call of `open`. */
class OpenCall {
  constructor(
    private readonly attempt: Attempt,
    private readonly signal: AbortSignal | undefined,
    private readonly reconcile: Reconcile<KeptResult> | undefined,
  ) {}

  run(): MaybePromise<OpenedClaim> {
    return after<BeginResult | typeof ABORTED, OpenedClaim>(this.#begin(), (result) =>
      result.kind === 'in_progress' ? this.#wait(result) : this.#handle(result),
    );
  }

  /** Looks at the original until its key is free, its outcome is stored, or `waitMs` passed (I5). */
  async #wait(first: InProgress): Promise<OpenedClaim> {
    const { runtime, id, settings } = this.attempt;
    if (settings.waitMs === 0) return refuseInProgress(first.remainingMs);
    const startedAt = runtime.timers.now();
    const waiter = runtime.waiters.join(id);
    try {
      return await this.#waitUntil(startedAt + settings.waitMs, waiter);
    } finally {
      waiter.leave();
      this.attempt.emit({ type: 'waited', waitedMs: runtime.timers.now() - startedAt });
    }
  }

  async #waitUntil(endsAt: number, waiter: Waiter): Promise<OpenedClaim> {
    const { runtime } = this.attempt;
    // The waiter notices every change from now on. The first look, without a pause, finds what changed before.
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const result = await this.#begin();
      if (result.kind !== 'in_progress') return this.#handle(result);
      const leftMs = endsAt - runtime.timers.now();
      if (leftMs <= 0 || runtime.closed) return refuseInProgress(result.remainingMs);
      await waiter.wait(Math.max(1, Math.min(pauseMs, leftMs, result.remainingMs)), this.signal);
    }
  }

  /** Returns at once when the signal is aborted. If the reply then says that a claim was made, releases the claim. */
  #begin(): MaybePromise<BeginResult | typeof ABORTED> {
    const { attempt, signal } = this;
    if (attempt.runtime.closed) return { kind: 'unavailable', error: new ClosedError('this idempotency instance') };
    if (signal?.aborted) return ABORTED;
    const beginning = attempt.begin();
    if (signal === undefined || !isPromise(beginning)) return beginning;
    return new Promise((resolve) => {
      const onAbort = (): void => resolve(ABORTED);
      signal.addEventListener('abort', onAbort);
      void beginning.then((result) => {
        signal.removeEventListener('abort', onAbort);
        if (signal.aborted && result.kind === 'claimed') attempt.abandonInBackground(result.generation, true);
        resolve(result);
      });
    });
  }

  #handle(result: Exclude<BeginResult, InProgress> | typeof ABORTED): MaybePromise<OpenedClaim> {
    const { runtime, settings } = this.attempt;
    switch (result.kind) {
      case 'claimed': {
        const claim = new LeasedClaim(this.attempt, result);
        const isOrphan = result.inherited && settings.onOrphan === 'reconcile';
        return isOrphan ? this.#reconcileOrphan(claim) : { kind: 'claimed', claim };
      }
      case 'settled':
        return replay(result.result);
      case 'mismatch':
        return { kind: 'refused', reason: 'mismatch', fingerprint: result.fingerprint };
      case 'orphan':
      case 'aborted':
        return { kind: 'refused', reason: result.kind };
      case 'unavailable':
        // The store is well: its caller uses too many keys. So `onStoreFailure` does not apply.
        if (isHeadgateError(result.error, 'scope_full')) return refuseNewKey(result.error as ScopeFullError);
        // A completed operation never runs again, even if its result cannot be read now.
        return settings.onStoreFailure === 'bypass' &&
          !runtime.closed &&
          !isHeadgateError(result.error, 'result_unavailable') &&
          !isHeadgateError(result.error, 'store_setup')
          ? { kind: 'bypassed', error: result.error }
          : result;
    }
  }

  async #reconcileOrphan(claim: LeasedClaim): Promise<OpenedClaim> {
    const answer = await askReconcile(this.attempt, claim, this.reconcile);
    if (claim.isLost) return { kind: 'refused', reason: 'lost' };
    if (answer === 'unknown') {
      // The mark of the first owner stays, so it is an orphan again, and the next retry asks without a wait.
      await claim.abandon();
      return { kind: 'refused', reason: 'orphan' };
    }
    if (!answer.done) return { kind: 'claimed', claim };
    const completion = await claim.complete(answer.result, { note: answer.note });
    switch (completion.kind) {
      case 'kept':
        return replay(answer.result);
      case 'superseded':
        return replay(completion.result);
      case 'lost':
        return { kind: 'refused', reason: 'lost' };
      case 'pending':
      case 'undone':
        return { kind: 'unavailable', error: completion.error };
    }
  }
}

function replay(result: KeptResult): OpenedClaim {
  return result.value === undefined
    ? { kind: 'refused', reason: 'not_kept', status: result.status }
    : { kind: 'replay', result };
}

function refuseInProgress(remainingMs: number): Refused {
  const retryAfterMs = Math.max(1, Math.min(remainingMs, RETRY_AFTER_MS));
  return { kind: 'refused', reason: 'in_progress', retryAfterMs };
}

function refuseNewKey({ retryAfterMs }: ScopeFullError): Refused {
  return { kind: 'refused', reason: 'too_many_keys', retryAfterMs };
}

/** The event that says how a claim ended. */
export function eventOf(opened: OpenedClaim): ClaimEvent {
  switch (opened.kind) {
    case 'claimed':
      return { type: 'claimed', inherited: opened.claim.inherited };
    case 'replay':
      return { type: 'replayed' };
    case 'refused':
      return { type: 'refused', reason: opened.reason };
    case 'unavailable':
      return { type: 'unavailable', command: 'begin', error: opened.error };
    case 'bypassed':
      return { type: 'bypassed', error: opened.error };
  }
}
