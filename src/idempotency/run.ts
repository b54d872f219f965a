import type { KeptResult } from '../core/claim.ts';
import { HeadgateError, isHeadgateError } from '../core/errors.ts';
import { after } from '../core/maybe-promise.ts';
import type { ClaimId, MaybePromise } from '../core/ports.ts';
import type { Unavailable } from './attempt.ts';
import type { Claim, Completion, Dispatch } from './claim.ts';
import type { Engine } from './engine.ts';
import { type Opened, open, type Reconcile } from './open.ts';
import { type Codec, keptFailure, keptValue, outcomeOf } from './outcome.ts';
import type { Refused } from './refusal.ts';
import type { ClaimSettings, SettingsInput } from './settings.ts';

/** What an operation is given. */
export interface OperationContext {
  /** Of the claim; one more at every attempt of the key's. Undefined where the store was bypassed. */
  readonly generation: number | undefined;
  /** An earlier attempt was dispatched, and its owner died: its effect may have happened (`reexecute`), or did not (`reconcile`). */
  readonly inherited: boolean;
  /** Fires when the claim is lost: stop where nothing has been done yet. */
  readonly signal: AbortSignal;
  /**
   * To be awaited just before the effect, where the option `dispatch` is `explicit`; otherwise it was done before the operation. Rejects
   * where the effect must not happen: let that error through.
   */
  dispatch(): Promise<void>;
  /** The effect is *known* not to have happened, nor will it: when the operation is over, its key is given back, and a retry executes (I6). */
  abandon(): void;
}

/** What is executed once. What it throws is kept as its outcome, unless it says {@link notExecuted}. */
export type Operation<T> = (context: OperationContext) => T | Promise<T>;

/** Options of one `run`. */
export interface RunOptions<T> extends SettingsInput, Partial<Codec<T>> {
  /**
   * `automatic`: the claim is marked before the operation starts. `explicit`: by `dispatch()` of the operation's, so that what comes before
   * it can fail and be tried again.
   * @default 'automatic'
   */
  readonly dispatch?: 'explicit' | 'automatic' | undefined;
  /** Needed where `onOrphan` is `reconcile`. */
  readonly reconcile?: Reconcile<T> | undefined;
  /** Ends the waiting for an original; never the operation, whose outcome is kept also when nobody waits for it (I11). */
  readonly signal?: AbortSignal | undefined;
}

/** What `run` says. */
export type RunResult<T> =
  | {
      readonly kind: 'executed';
      readonly value: T;
      /** Whether that is acknowledged; otherwise it goes on in the background. */
      readonly kept: boolean;
    }
  /** An earlier execution's value. */
  | { readonly kind: 'replayed'; readonly value: T }
  | {
      /** The operation failed, and that outcome is kept (I6). */
      readonly kind: 'failed';
      /** What the operation threw; on a replay a `KeptFailureError` with its name and message. */
      readonly error: unknown;
      readonly replayed: boolean;
    }
  /** The operation gave its key back. */
  | { readonly kind: 'released'; readonly value: T }
  | Refused
  /** Nothing was executed, or it is unknown whose outcome counts (I12): to be tried again. */
  | Unavailable
  /** Executed without protection (I12). */
  | { readonly kind: 'bypassed'; readonly value: T };

/** The effect must not happen. Made by `dispatch()` of an operation's, and caught by `run`. */
class NotDispatchedError extends HeadgateError {
  constructor(kind: string) {
    super('not_dispatched', `the effect must not happen: dispatch said ${kind}`);
  }
}

/** How one run goes. */
export interface RunPlan<T> {
  readonly engine: Engine;
  readonly settings: ClaimSettings;
  readonly codec: Codec<T>;
  readonly dispatch: 'explicit' | 'automatic';
  readonly reconcile: Reconcile<T> | undefined;
  readonly signal: AbortSignal | undefined;
}

/** @throws (or rejects with) what the operation throws where the key is given back, and what `deserialize` throws */
export function run<T>(
  plan: RunPlan<T>,
  { scope, key }: ClaimId,
  fingerprint: string,
  operation: Operation<T>,
): MaybePromise<RunResult<T>> {
  const { engine, settings, codec, dispatch, signal } = plan;
  const reconcile = plan.reconcile === undefined ? undefined : keeping(plan.reconcile, codec);
  const opened = open(engine, { scope, key, fingerprint, dispatch, reconcile, signal }, settings);
  return after<Opened, RunResult<T>>(opened, (known) => settle(known, plan, operation));
}

function settle<T>(
  opened: Opened,
  { codec, dispatch }: RunPlan<T>,
  operation: Operation<T>,
): MaybePromise<RunResult<T>> {
  switch (opened.kind) {
    case 'claimed':
      return new Execution(opened.claim, codec).run(operation, dispatch);
    case 'replay':
      return replayed(opened.result, codec);
    case 'bypassed':
      return unprotected(operation);
    default:
      return opened;
  }
}

/** As an operation sees its execution. What is called can be taken apart from it; it is made when asked for, since most operations do not. */
class Context implements OperationContext {
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

  get dispatch(): () => Promise<void> {
    return () => this.#execution.dispatch();
  }

  get abandon(): () => void {
    return () => this.#execution.abandon();
  }
}

/** One execution under a claim. */
class Execution<T> {
  readonly claim: Claim;
  readonly #codec: Codec<T>;
  /** What dispatch said, where that was not `ok`. */
  #stopped: Exclude<Dispatch, { kind: 'ok' }> | undefined;
  #abandoned = false;

  constructor(claim: Claim, codec: Codec<T>) {
    this.claim = claim;
    this.#codec = codec;
  }

  async dispatch(): Promise<void> {
    if (this.#abandoned) throw new NotDispatchedError('nothing, since the operation gave its key back');
    const reply = await this.claim.dispatch();
    if (reply.kind === 'ok') return;
    this.#stopped = reply;
    throw new NotDispatchedError(reply.kind);
  }

  abandon(): void {
    this.#abandoned = true;
  }

  async run(operation: Operation<T>, dispatch: 'explicit' | 'automatic'): Promise<RunResult<T>> {
    if (dispatch === 'automatic' && !this.claim.dispatched) {
      const reply = await this.claim.dispatch();
      if (reply.kind !== 'ok') return this.#notDispatched(reply);
    }
    let value: T;
    try {
      value = await operation(new Context(this));
    } catch (error) {
      return this.#threw(error);
    }
    if (this.#stopped !== undefined) return this.#notDispatched(this.#stopped);
    if (this.#abandoned) {
      const release = await this.claim.abandon();
      return release.kind === 'settled' ? replayed(release.result, this.#codec) : { kind: 'released', value };
    }
    const completion = await this.claim.complete(keptValue(value, this.#codec));
    return this.#completed(completion, { kind: 'executed', value, kept: completion.kind === 'kept' });
  }

  async #threw(error: unknown): Promise<RunResult<T>> {
    const claim = this.claim;
    if (this.#stopped !== undefined) return this.#notDispatched(this.#stopped);
    if (isHeadgateError(error, 'claim_lost') && claim.signal.aborted) {
      // It stopped because somebody else goes on, whose outcome counts: its own would only get in the way.
      claim.leave();
      return { kind: 'refused', reason: 'lost' };
    }
    const isNotExecuted = isHeadgateError(error, 'not_executed');
    if (isNotExecuted || this.#abandoned || !claim.dispatched) {
      const release = await claim.abandon();
      if (release.kind === 'settled') return replayed(release.result, this.#codec);
      throw isNotExecuted ? error.cause : error;
    }
    return this.#completed(await claim.complete(keptFailure(error)), { kind: 'failed', error, replayed: false });
  }

  #completed(completion: Completion, own: RunResult<T>): RunResult<T> {
    switch (completion.kind) {
      case 'kept':
        return own;
      case 'superseded':
        return replayed(completion.result, this.#codec);
      case 'lost':
        return this.claim.dispatched ? own : { kind: 'refused', reason: 'lost' };
      case 'pending':
        return completion.answer === 'own' ? own : { kind: 'unavailable', error: completion.error };
    }
  }

  #notDispatched(reply: Exclude<Dispatch, { kind: 'ok' }>): RunResult<T> {
    switch (reply.kind) {
      case 'settled':
        return replayed(reply.result, this.#codec);
      case 'lost':
        return { kind: 'refused', reason: 'lost' };
      case 'unavailable':
        return reply;
    }
  }
}

function replayed<T>(result: KeptResult, codec: Codec<T>): RunResult<T> {
  const { status, value } = result;
  if (value === undefined) return { kind: 'refused', reason: 'not_kept', status };
  const outcome = outcomeOf(value, status, codec);
  return outcome.kind === 'failed' ? { ...outcome, replayed: true } : outcome;
}

/** Keeps what the callback knows as the operation's own value would be. */
function keeping<T>(reconcile: Reconcile<T>, codec: Codec<T>): Reconcile<KeptResult> {
  return async (about) => {
    const answer = await reconcile(about);
    return typeof answer === 'object' && answer.done === true
      ? { done: true, result: keptValue(answer.result, codec) }
      : (answer as Exclude<typeof answer, { done: true }>);
  };
}

async function unprotected<T>(operation: Operation<T>): Promise<RunResult<T>> {
  try {
    const { signal } = new AbortController();
    const value = await operation({
      generation: undefined,
      inherited: false,
      signal,
      dispatch: () => Promise.resolve(),
      abandon() {},
    });
    return { kind: 'bypassed', value };
  } catch (error) {
    throw isHeadgateError(error, 'not_executed') ? error.cause : error;
  }
}
