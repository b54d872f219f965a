import { isHeadgateError } from '../base/errors.ts';
import { after, type MaybePromise } from '../base/maybe-promise.ts';
import type { KeptResult } from '../core/claim.ts';
import type { ClaimId } from '../core/ports.ts';
import type { Claim, ClaimCompletion, ClaimDispatch } from './claim.ts';
import { NotDispatchedError } from './not-dispatched.ts';
import { refuse } from './note.ts';
import { type OpenedClaim, open } from './open.ts';
import { decodeOutcome, encodeFailure, encodeValue, type ResultCodec } from './outcome.ts';
import type { Reconcile } from './reconcile.ts';
import type { Refused, Unavailable } from './refusal.ts';
import type { Runtime } from './runtime.ts';
import type { ClaimSettings, SettingsInput } from './settings.ts';

/** What an operation receives. Its functions work without `this`. */
export interface OperationContext {
  /** Generation of the claim; increases by one with every claim of the key. Undefined if the store was bypassed. */
  readonly generation: number | undefined;
  /** An earlier owner died after dispatch. Its effect may have happened (`reexecute`), or did not (`reconcile`). */
  readonly inherited: boolean;
  /** Aborted when the claim is lost. Stop then, if nothing has been done yet. */
  readonly signal: AbortSignal;
  /**
   * With the option `dispatch: 'explicit'`, await it just before the effect. Otherwise the dispatch was recorded before
   * the operation started. Rejects if the effect must not happen: do not catch that error.
   * @param note for the rows that the store writes in the same step: see `dispatch` of {@link Claim}. Only with
   * `explicit`
   */
  dispatch(note?: unknown): Promise<void>;
  /**
   * Sets the note of the outcome, or of the release, of this execution: see `noteOutcome` of {@link Claim}.
   * @throws OptionError
   */
  noteOutcome(note: unknown): void;
  /**
   * Call it if the effect is *known* not to have happened, and will not happen. The key is released after the
   * operation, and a retry executes (I6).
   */
  abandon(): void;
}

/** Executed once. An error that it throws is stored as its outcome, unless `notExecuted` made the error. */
export type IdempotentOperation<T> = (context: OperationContext) => T | Promise<T>;

/** Options of one `run`. */
export interface RunOptions<T> extends SettingsInput, Partial<ResultCodec<T>> {
  /**
   * `automatic`: the dispatch is recorded before the operation starts. `explicit`: the operation calls `dispatch()`, so
   * that anything before that call can fail and be retried.
   * @default 'automatic'
   */
  readonly dispatch?: 'explicit' | 'automatic' | undefined;
  /** Required if `onOrphan` is `reconcile`. */
  readonly reconcile?: Reconcile<T> | undefined;
  /** Ends the wait for an original. Never ends the operation: its outcome is stored even without a caller (I11). */
  readonly signal?: AbortSignal | undefined;
}

/** Result of `run`. */
export type RunResult<T> =
  | {
      readonly kind: 'executed';
      readonly value: T;
      /** Whether the store acknowledged the outcome. If not, it is sent again in the background. */
      readonly kept: boolean;
    }
  /** The value of an earlier execution. */
  | { readonly kind: 'replayed'; readonly value: T }
  | {
      /** The operation failed, and its failure is stored as the outcome (I6). */
      readonly kind: 'failed';
      /** What the operation threw; in a replay, a `KeptFailureError` with its name and message. */
      readonly error: unknown;
      readonly replayed: boolean;
    }
  /** The operation called `abandon()`. */
  | { readonly kind: 'released'; readonly value: T }
  | Refused
  /** Nothing was executed, or it is unknown which outcome counts (I12): retry. */
  | Unavailable
  /** The operation was executed without protection (I12). */
  | { readonly kind: 'bypassed'; readonly value: T };

/** Options of one `run` with all defaults filled in. */
export interface RunParameters<T> {
  readonly runtime: Runtime;
  readonly settings: ClaimSettings;
  readonly codec: ResultCodec<T>;
  readonly dispatch: 'explicit' | 'automatic';
  readonly reconcile: Reconcile<T> | undefined;
  readonly signal: AbortSignal | undefined;
}

/** @throws (or rejects with) what the operation throws if the key is released, and what `deserialize` throws */
export function run<T>(
  parameters: RunParameters<T>,
  { scope, key }: ClaimId,
  fingerprint: string,
  operation: IdempotentOperation<T>,
): MaybePromise<RunResult<T>> {
  const { runtime, settings, codec, dispatch, signal } = parameters;
  const reconcile = parameters.reconcile && encodeReconciled(parameters.reconcile, codec);
  const opening = open(runtime, { scope, key, fingerprint, dispatch, reconcile, signal }, settings);
  return after<OpenedClaim, RunResult<T>>(opening, (opened) => {
    switch (opened.kind) {
      case 'claimed':
        return new Execution(opened.claim, codec).run(operation, dispatch);
      case 'replay':
        return replay(opened.result, codec);
      case 'bypassed':
        return runUnprotected(operation);
      default:
        return opened;
    }
  });
}

/** The functions can be destructured. They are created on first use, because most operations do not use them. */
class ExecutionContext implements OperationContext {
  readonly #execution: Pick<Execution<never>, 'claim' | 'dispatch' | 'abandon'>;
  readonly generation: number;
  readonly inherited: boolean;

  constructor(execution: Pick<Execution<never>, 'claim' | 'dispatch' | 'abandon'>) {
    this.#execution = execution;
    this.generation = execution.claim.generation;
    this.inherited = execution.claim.inherited;
  }

  get signal(): AbortSignal {
    return this.#execution.claim.signal;
  }

  get dispatch(): (note?: unknown) => Promise<void> {
    return (note) => this.#execution.dispatch(note);
  }

  get noteOutcome(): (note: unknown) => void {
    return (note) => this.#execution.claim.noteOutcome(note);
  }

  get abandon(): () => void {
    return () => this.#execution.abandon();
  }
}

/** One execution of an operation under a claim. */
class Execution<T> {
  /** The reply to dispatch, if it was not `ok`. */
  #failedDispatch: Exclude<ClaimDispatch, { kind: 'ok' }> | undefined;
  #isAbandoned = false;

  constructor(
    readonly claim: Claim,
    readonly codec: ResultCodec<T>,
  ) {}

  async dispatch(note?: unknown): Promise<void> {
    if (this.#isAbandoned) throw new NotDispatchedError('the operation has already called abandon()');
    const reply = await this.claim.dispatch(note);
    if (reply.kind === 'ok') return;
    this.#failedDispatch = reply;
    const cause = reply.kind === 'unavailable' ? reply.error : undefined;
    throw new NotDispatchedError(`the reply to dispatch was "${reply.kind}"`, cause);
  }

  abandon(): void {
    this.#isAbandoned = true;
  }

  async run(operation: IdempotentOperation<T>, dispatch: 'explicit' | 'automatic'): Promise<RunResult<T>> {
    if (dispatch === 'automatic' && !this.claim.dispatched) {
      const reply = await this.claim.dispatch();
      if (reply.kind !== 'ok') return this.#resultWithoutDispatch(reply);
    }
    let value: T;
    try {
      value = await operation(new ExecutionContext(this));
    } catch (error) {
      return this.#resultOfError(error);
    }
    if (this.#failedDispatch !== undefined) return this.#resultWithoutDispatch(this.#failedDispatch);
    if (this.#isAbandoned) {
      const release = await this.claim.abandon();
      return release.kind === 'settled' ? replay(release.result, this.codec) : { kind: 'released', value };
    }
    const completion = await this.claim.complete(encodeValue(value, this.codec));
    return this.#resultAfter(completion, { kind: 'executed', value, kept: completion.kind === 'kept' });
  }

  async #resultOfError(error: unknown): Promise<RunResult<T>> {
    const claim = this.claim;
    if (this.#failedDispatch !== undefined) return this.#resultWithoutDispatch(this.#failedDispatch);
    if (isHeadgateError(error, 'claim_lost') && claim.signal.aborted) {
      // The operation stopped because another attempt took over. The outcome of that attempt counts.
      await claim.leave();
      return { kind: 'refused', reason: 'lost' };
    }
    const isNotExecuted = isHeadgateError(error, 'not_executed');
    if (isNotExecuted || this.#isAbandoned || !claim.dispatched) {
      const release = await claim.abandon();
      if (release.kind === 'settled') return replay(release.result, this.codec);
      throw isNotExecuted ? error.cause : error;
    }
    const completion = await claim.complete(encodeFailure(error));
    return this.#resultAfter(completion, { kind: 'failed', error, replayed: false });
  }

  #resultAfter(completion: ClaimCompletion, own: RunResult<T>): RunResult<T> {
    switch (completion.kind) {
      case 'kept':
        return own;
      case 'superseded':
        return replay(completion.result, this.codec);
      case 'lost':
        return this.claim.dispatched ? own : { kind: 'refused', reason: 'lost' };
      case 'pending':
        return completion.answer === 'own' ? own : { kind: 'unavailable', error: completion.error };
      case 'undone':
        return { kind: 'unavailable', error: completion.error };
    }
  }

  #resultWithoutDispatch(reply: Exclude<ClaimDispatch, { kind: 'ok' }>): RunResult<T> {
    switch (reply.kind) {
      case 'settled':
        return replay(reply.result, this.codec);
      case 'lost':
        return { kind: 'refused', reason: 'lost' };
      case 'unavailable':
        return reply;
    }
  }
}

function replay<T>({ status, value }: KeptResult, codec: ResultCodec<T>): RunResult<T> {
  if (value === undefined) return { kind: 'refused', reason: 'not_kept', status };
  const outcome = decodeOutcome(value, status, codec);
  return outcome.kind === 'failed' ? { ...outcome, replayed: true } : outcome;
}

/** Encodes the callback's result in the same way as the operation's own value. */
export function encodeReconciled<T>(reconcile: Reconcile<T>, codec: ResultCodec<T>): Reconcile<KeptResult> {
  return async (about) => {
    const answer = await reconcile(about);
    return typeof answer === 'object' && answer.done === true
      ? { ...answer, result: encodeValue(answer.result, codec) }
      : (answer as Exclude<typeof answer, { done: true }>);
  };
}

function refuseBypassed(): never {
  throw refuse('cannot be written, because the store failed and is bypassed');
}

async function runUnprotected<T>(operation: IdempotentOperation<T>): Promise<RunResult<T>> {
  try {
    const { signal } = new AbortController();
    const value = await operation({
      generation: undefined,
      inherited: false,
      signal,
      dispatch: async (note) => (note === undefined ? undefined : refuseBypassed()),
      noteOutcome: refuseBypassed,
      abandon() {},
    });
    return { kind: 'bypassed', value };
  } catch (error) {
    throw isHeadgateError(error, 'not_executed') ? error.cause : error;
  }
}
