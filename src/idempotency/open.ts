import type { KeptResult } from '../core/claim.ts';
import { ClosedError } from '../core/errors.ts';
import { after, isPromise } from '../core/maybe-promise.ts';
import type { ClaimId, MaybePromise } from '../core/ports.ts';
import { Attempt, type Beginning, type Unavailable } from './attempt.ts';
import { type Claim, HeldClaim } from './claim.ts';
import type { Engine } from './engine.ts';
import type { Told } from './events.ts';
import type { Refused } from './refusal.ts';
import type { ClaimSettings, SettingsInput } from './settings.ts';
import type { Waiter } from './waiters.ts';

/** What a {@link Reconcile} callback is told. */
export interface Reconciliation extends ClaimId {
  readonly fingerprint: string;
  readonly generation: number;
  /** Fires when the claim, under which the question is asked, is lost. */
  readonly signal: AbortSignal;
}

/**
 * What became of an operation whose owner died after dispatch. `done: false` means that it did not happen *and cannot happen any more*; when
 * in doubt, `unknown`.
 */
export type Reconciled<Result> =
  | { readonly done: true; readonly result: Result }
  | { readonly done: false }
  | 'unknown';

/** Asks somebody who knows, such as the provider (I9). Throwing is as good as `unknown`. */
export type Reconcile<Result> = (about: Reconciliation) => MaybePromise<Reconciled<Result>>;

/** What is opened, and how. */
export interface OpenRequest extends ClaimId, SettingsInput {
  /** Of the request: the same for the same request only (I3). */
  readonly fingerprint: string;
  /** `automatic`: the claim is marked as dispatched with the same command where that is safe; `explicit`: by {@link Claim.dispatch} alone. */
  readonly dispatch: 'explicit' | 'automatic';
  /** Needed where `onOrphan` is `reconcile`. */
  readonly reconcile?: Reconcile<KeptResult> | undefined;
  /** The caller is gone: ends the waiting for an original. */
  readonly signal?: AbortSignal | undefined;
}

/** What `open` says. */
export type Opened =
  /** The caller is the one to execute: exactly as {@link Claim} has it. */
  | { readonly kind: 'claimed'; readonly claim: Claim }
  | { readonly kind: 'replay'; readonly result: KeptResult }
  | Refused
  /** Nothing may be executed (I12). */
  | Unavailable
  /** To be executed without any protection (I12). */
  | { readonly kind: 'bypassed'; readonly error: unknown };

/** Pause between two looks at an original, doubled up to the longest. */
const PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;
/** What a duplicate that is not to wait any more is told, where the lease does not end sooner. */
const RETRY_AFTER_MS = 1_000;

/** Claims the key, waits for the original's outcome, or says what is in the way. Never rejects, nor throws. */
export function open(engine: Engine, request: OpenRequest, settings: ClaimSettings): MaybePromise<Opened> {
  const { scope, key, fingerprint, dispatch } = request;
  const attempt = new Attempt(engine, { scope, key }, fingerprint, settings, dispatch === 'automatic');
  const opened = new Opening(attempt, request).run();
  if (!engine.events.heard) return opened;
  return after(opened, (known) => {
    engine.events.emit({ scope, key, ...toldOf(known) });
    return known;
  });
}

class Opening {
  readonly #attempt: Attempt;
  readonly #signal: AbortSignal | undefined;
  readonly #reconcile: Reconcile<KeptResult> | undefined;

  constructor(attempt: Attempt, { signal, reconcile }: OpenRequest) {
    this.#attempt = attempt;
    this.#signal = signal;
    this.#reconcile = reconcile;
  }

  run(): MaybePromise<Opened> {
    return after<Beginning | typeof ABORTED, Opened>(this.#begin(), (found) =>
      found.kind === 'in_progress' ? this.#wait(found) : this.#judge(found),
    );
  }

  /** Looks again and again until the key is free, its outcome is there, or the time is over (I5). */
  async #wait(first: Extract<Beginning, { kind: 'in_progress' }>): Promise<Opened> {
    const { engine, id, settings } = this.#attempt;
    if (settings.waitMs === 0) return inProgress(first.remainingMs);
    const startedAt = engine.timers.now();
    const waiter = engine.waiters.join(id);
    try {
      return await this.#waitBy(waiter, startedAt + settings.waitMs);
    } finally {
      waiter.leave();
      const waitedMs = engine.timers.now() - startedAt;
      if (engine.events.heard) engine.events.emit({ ...id, type: 'waited', waitedMs });
    }
  }

  async #waitBy(waiter: Waiter, until: number): Promise<Opened> {
    const { timers } = this.#attempt.engine;
    // The waiter hears from now on; what happened before is looked for at once.
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const found = await this.#begin();
      if (found.kind !== 'in_progress') return this.#judge(found);
      const leftMs = until - timers.now();
      if (leftMs <= 0 || this.#attempt.engine.closed) return inProgress(found.remainingMs);
      await waiter.wait(Math.max(1, Math.min(pauseMs, leftMs, found.remainingMs)), this.#signal);
    }
  }

  /** Comes back at once when the caller goes; what it may have claimed is given back as soon as that is known. */
  #begin(): MaybePromise<Beginning | typeof ABORTED> {
    const attempt = this.#attempt;
    const signal = this.#signal;
    if (attempt.engine.closed) return { kind: 'unavailable', error: new ClosedError('the idempotency') };
    if (signal?.aborted) return ABORTED;
    const beginning = attempt.begin();
    if (signal === undefined || !isPromise(beginning)) return beginning;
    return new Promise((resolve) => {
      const leave = (): void => resolve(ABORTED);
      signal.addEventListener('abort', leave);
      void beginning.then((found) => {
        signal.removeEventListener('abort', leave);
        if (signal.aborted && found.kind === 'claimed') attempt.abandonLater(found.generation, true);
        resolve(found);
      });
    });
  }

  #judge(found: Exclude<Beginning, { kind: 'in_progress' }> | typeof ABORTED): MaybePromise<Opened> {
    switch (found.kind) {
      case 'claimed': {
        const claim = new HeldClaim(this.#attempt, found);
        const asks = found.inherited && this.#attempt.settings.onOrphan === 'reconcile';
        return asks ? this.#ask(claim) : { kind: 'claimed', claim };
      }
      case 'settled':
        return replayOf(found.result);
      case 'mismatch':
        return { kind: 'refused', reason: 'mismatch', fingerprint: found.fingerprint };
      case 'orphan':
      case 'aborted':
        return { kind: 'refused', reason: found.kind };
      case 'unavailable':
        return this.#attempt.settings.onStoreFailure === 'bypass' && !this.#attempt.engine.closed
          ? { kind: 'bypassed', error: found.error }
          : found;
    }
  }

  /** Asks, under the new owner's lease, what became of the operation (I9). */
  async #ask(claim: HeldClaim): Promise<Opened> {
    const answer = await this.#answerOf(claim);
    if (claim.lost) return { kind: 'refused', reason: 'lost' };
    if (answer === 'unknown') {
      // Nothing is sent: the lease runs out, and the next retry asks again.
      claim.leave();
      return { kind: 'refused', reason: 'orphan' };
    }
    if (!answer.done) return { kind: 'claimed', claim };
    const completion = await claim.complete(answer.result);
    switch (completion.kind) {
      case 'kept':
        return replayOf(answer.result);
      case 'superseded':
        return replayOf(completion.result);
      case 'lost':
        return { kind: 'refused', reason: 'lost' };
      case 'pending':
        return { kind: 'unavailable', error: completion.error };
    }
  }

  async #answerOf(claim: HeldClaim): Promise<Reconciled<KeptResult>> {
    const { engine, id } = this.#attempt;
    let answer: Reconciled<KeptResult> = 'unknown';
    let failure: { readonly error?: unknown } = {};
    try {
      const { fingerprint, generation, signal } = claim;
      answer = sure(await this.#reconcile?.({ ...id, fingerprint, generation, signal }));
    } catch (error) {
      failure = { error };
    }
    const told = answer === 'unknown' ? answer : answer.done ? 'done' : 'not_done';
    if (engine.events.heard) engine.events.emit({ ...id, type: 'reconciled', answer: told, ...failure });
    return answer;
  }
}

const ABORTED = { kind: 'aborted' } as const;

function replayOf(result: KeptResult): Opened {
  return result.value === undefined
    ? { kind: 'refused', reason: 'not_kept', status: result.status }
    : { kind: 'replay', result };
}

/** What is no clear answer is none: taken for "not done" it would execute twice. */
function sure(answer: Reconciled<KeptResult> | undefined): Reconciled<KeptResult> {
  if (typeof answer !== 'object' || answer === null) return 'unknown';
  return answer.done === false || (answer.done === true && answer.result !== undefined) ? answer : 'unknown';
}

function inProgress(remainingMs: number): Refused {
  const retryAfterMs = Math.max(1, Math.min(remainingMs, RETRY_AFTER_MS));
  return { kind: 'refused', reason: 'in_progress', retryAfterMs };
}

function toldOf(opened: Opened): Told {
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
