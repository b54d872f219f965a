import type { MaybePromise } from '../base/maybe-promise.ts';
import type { KeptResult } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import type { Attempt } from './attempt.ts';
import type { LeasedClaim } from './leased-claim.ts';
import { encodeNote } from './note.ts';

/** What a {@link Reconcile} callback receives. */
export interface Reconciliation extends ClaimId {
  readonly fingerprint: string;
  readonly generation: number;
  /** Aborted when the claim under which the question is asked is lost. */
  readonly signal: AbortSignal;
}

/**
 * What became of an operation whose owner died after dispatch. `done: false` means that it did not happen *and cannot
 * happen any more*. If in doubt, return `unknown`. `note` is for the store's rows: of `done: true` for those of
 * `complete`; of `done: false` for those of `abandon`, if a job asks and so the key is freed.
 */
export type Reconciled<Result> =
  | { readonly done: true; readonly result: Result; readonly note?: unknown }
  | { readonly done: false; readonly note?: unknown }
  | 'unknown';

/** Finds out what became of an orphan, for example by asking the provider (I9). An error counts as `unknown`. */
export type Reconcile<Result> = (about: Reconciliation) => MaybePromise<Reconciled<Result>>;

/** Calls the callback under the lease of the new owner, and emits the answer (I9). */
export async function askReconcile(
  attempt: Attempt,
  { fingerprint, generation, signal }: LeasedClaim,
  reconcile: Reconcile<KeptResult> | undefined,
): Promise<Reconciled<KeptResult>> {
  let answer: Reconciled<KeptResult> = 'unknown';
  let failure: { readonly error?: unknown } = {};
  try {
    const given = checkAnswer(await reconcile?.({ ...attempt.id, fingerprint, generation, signal }));
    // A note that cannot be written counts as an error of the callback.
    if (given !== 'unknown')
      encodeNote(attempt.runtime.store, given.done ? 'complete' : 'abandon', attempt.id, given.note);
    answer = given;
  } catch (error) {
    failure = { error };
  }
  const word = answer === 'unknown' ? answer : answer.done ? 'done' : 'not_done';
  attempt.emit({ type: 'reconciled', answer: word, ...failure });
  return answer;
}

/** Any unclear answer counts as `unknown`: taken for "not done", it would execute the operation twice. */
function checkAnswer(answer: Reconciled<KeptResult> | undefined): Reconciled<KeptResult> {
  if (typeof answer !== 'object' || answer === null) return 'unknown';
  return answer.done === false || (answer.done === true && answer.result !== undefined) ? answer : 'unknown';
}
