import { ClosedError, OptionError, SubjectError } from '../base/errors.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import { isPromise } from '../base/maybe-promise.ts';
import { checkFunctions, checkMethods, checkOneOf, checkOptions } from '../base/options.ts';
import type { KeptResult } from '../core/claim.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../core/ports.ts';
import { createSystemTimers, type Timers } from '../core/timers.ts';
import type { IdempotencyEvent } from './events.ts';
import { fingerprintOf } from './fingerprint.ts';
import type { NoteOptions } from './note.ts';
import { type OpenedClaim, type OpenRequest, open } from './open.ts';
import { completeByOperator, type OperatorCompletion, type OperatorRelease, releaseByOperator } from './operator.ts';
import { encodeValue, jsonCodec, type ResultCodec } from './outcome.ts';
import type { Reconcile } from './reconcile.ts';
import { type OrphanReconciliation, reconcileOrphan } from './reconcile-orphan.ts';
import { encodeReconciled, type IdempotentOperation, type RunOptions, type RunResult, run } from './run.ts';
import { Runtime } from './runtime.ts';
import {
  type ClaimSettings,
  DEFAULT_SETTINGS,
  SETTING_NAMES,
  type SettingsInput,
  settingsOf,
  warnOfSeconds,
} from './settings.ts';

/** Options of {@link createIdempotency}. A call can override each setting. */
export interface IdempotencyOptions extends SettingsInput {
  /** Where claims are stored. {@link Idempotency.close} closes it. */
  readonly store: ClaimStore;
  /** Finds out what became of an orphan, for every `run` without its own `reconcile` (I9). */
  readonly reconcile?: Reconcile<unknown> | undefined;
  /** Receives every event of a claim. */
  readonly onEvent?: ((event: IdempotencyEvent) => void) | undefined;
  /**
   * Is called with what `onEvent` throws, and with the warnings of `validate`; false: nothing is logged.
   * @default console.error, with the stack of the error
   */
  readonly logger?: Logger | false | undefined;
  /**
   * Whether a `retentionMs` that is probably in seconds is logged (`HG_SECONDS` in `docs/misuse.md`).
   * @default true
   */
  readonly validate?: boolean | undefined;
  /**
   * Clock and timers, for tests.
   * @default those of the platform
   */
  readonly timers?: Timers | undefined;
}

/** Options of `release`. */
export interface ReleaseOptions extends NoteOptions {
  readonly force?: boolean | undefined;
}

/** The part of {@link Idempotency} that a gate uses. */
export interface KeyOpener {
  /** Settings of every call that does not override them. */
  readonly settings: ClaimSettings;
  /**
   * Claims a key for a caller that executes in its own way, such as the gate.
   * @throws OptionError, SubjectError
   */
  open(request: OpenRequest): Promise<OpenedClaim>;
  /**
   * Whether open claims could take every connection that a store needs. Absent if they hold none.
   * @param identity of the store
   */
  sharesConnections?(identity: object): boolean;
}

/** Executes the request of each key once, and returns the same result to every caller. */
export interface Idempotency extends KeyOpener {
  /**
   * Executes the operation once per key. Every other call with the key gets the outcome of that execution.
   * @param key a string, or a key and its scope: one tenant can neither replay nor probe the keys of another (I2)
   * @param request text, bytes or JSON; another request with the same key is refused
   * @throws what the operation throws if nothing was dispatched, or if it is `notExecuted(error)`: then the key is
   * released. Also OptionError, SubjectError, ClosedError
   */
  run<T>(
    key: string | ClaimId,
    request: unknown,
    operation: IdempotentOperation<T>,
    options?: RunOptions<T>,
  ): Promise<RunResult<T>>;
  /** For an operator: returns the claim of the key, or undefined. Changes nothing. */
  inspect(id: ClaimId): Promise<ClaimView | undefined>;
  /**
   * For an operator: releases the key of an orphan whose effect is known not to happen.
   * @param options.force also release before the owner's lease expires; default false
   * @param options.note for the store's `rows.abandon`
   * @throws OptionError, SubjectError, the store's errors
   */
  release(id: ClaimId, options?: ReleaseOptions): Promise<OperatorRelease>;
  /**
   * For an operator: completes an orphan with the value that `run` would have stored.
   * @param options.note for the store's `rows.complete`
   * @throws OptionError, SubjectError, the store's errors
   */
  complete(id: ClaimId, value: unknown, options?: NoteOptions): Promise<OperatorCompletion>;
  /** Like `complete`, for a claim that `open` made. */
  completeWith(id: ClaimId, result: KeptResult, options?: NoteOptions): Promise<OperatorCompletion>;
  /**
   * For a job: takes an orphan over without a request of its client, and asks the callback what became of it. The lease
   * is renewed meanwhile. `done: true` completes the claim, `done: false` frees its key, and `unknown` leaves the orphan.
   * @param reconcile of a claim that `run` made; by default the option of `createIdempotency`
   * @throws OptionError, SubjectError, the store's errors. The completion or the release is then repeated in the
   * background
   */
  reconcile(id: ClaimId, reconcile?: Reconcile<unknown>): Promise<OrphanReconciliation>;
  /** Like `reconcile`, for a claim that `open` or a gate made. */
  reconcileWith(id: ClaimId, reconcile: Reconcile<KeptResult>): Promise<OrphanReconciliation>;
  /** How many claims this process holds now. */
  readonly held: number;
  /** How many duplicates wait for an original now (I5). */
  readonly waiting: number;
  /** How many commands are being retried in the background. */
  readonly pending: number;
  /** Resolves when `held` and `pending` are 0. */
  idle(): Promise<void>;
  /**
   * Refuses new calls, ends all waiting, and lets running operations finish for `timeoutMs`. Then stops every timer and
   * closes the store.
   * @param options.timeoutMs milliseconds, default 5,000
   */
  close(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

const COMMANDS = ['begin', 'extend', 'dispatch', 'complete', 'abandon', 'inspect'] as const;
const CALL_OPTIONS = /* @__PURE__ */ (SETTING_NAMES as string[]).concat('dispatch', 'reconcile', 'signal');
const RUN_OPTIONS = /* @__PURE__ */ CALL_OPTIONS.concat('serialize', 'deserialize');
export const OPEN_OPTIONS = /* @__PURE__ */ CALL_OPTIONS.concat('scope', 'key', 'fingerprint');
const NO_OPTIONS = /* @__PURE__ */ Object.freeze({});
const CLOSE_TIMEOUT_MS = 5_000;

/**
 * @example
 * ```ts
 * const idempotency = createIdempotency({ store: createMemoryClaimStore() });
 * const result = await idempotency.run(key, mail, () => provider.send(mail));
 * if (result.kind === 'executed' || result.kind === 'replayed') return result.value;
 * ```
 * @throws OptionError that names the option
 */
export function createIdempotency(options: IdempotencyOptions): Idempotency {
  checkOptions(options, ['store', 'reconcile', 'onEvent', 'logger', 'validate', 'timers', ...SETTING_NAMES], 'options');
  const { store, reconcile, onEvent, logger, timers = createSystemTimers() } = options;
  checkMethods('store', store, COMMANDS, ', as createMemoryClaimStore() does');
  checkMethods('timers', timers, ['now', 'after'], ', as a clock with timers does');
  checkFunctions(options, ['onEvent', 'reconcile']);
  const runtime = new Runtime(store, timers, onEvent, createLogger(logger));
  const settings = settingsOf(options, DEFAULT_SETTINGS);
  warnOfSeconds(settings, options);
  return new StoreIdempotency(runtime, settings, reconcile);
}

class StoreIdempotency implements Idempotency {
  readonly #runtime: Runtime;
  readonly settings: ClaimSettings;
  readonly #reconcile: Reconcile<unknown> | undefined;
  #closing: Promise<void> | undefined;

  constructor(runtime: Runtime, settings: ClaimSettings, reconcile: Reconcile<unknown> | undefined) {
    this.#runtime = runtime;
    this.settings = settings;
    this.#reconcile = reconcile;
  }

  get held(): number {
    return this.#runtime.heldClaims;
  }

  get waiting(): number {
    return this.#runtime.waiters.size;
  }

  get pending(): number {
    return this.#runtime.retries.size;
  }

  async run<T>(
    key: string | ClaimId,
    request: unknown,
    operation: IdempotentOperation<T>,
    options: RunOptions<T> = NO_OPTIONS,
  ): Promise<RunResult<T>> {
    if (this.#runtime.closed) throw new ClosedError('this idempotency instance');
    if (options !== NO_OPTIONS) checkOptions(options, RUN_OPTIONS, 'options');
    const id = checkId(key);
    // Checked before anything is claimed; otherwise the error would be stored as the outcome.
    checkFunction('operation', operation);
    // The type of the values is known only to the author of the callback.
    const { dispatch = 'automatic', reconcile = this.#reconcile as Reconcile<T> | undefined, signal } = options;
    checkCall(dispatch, signal);
    const settings = this.#settingsFor(options, reconcile);
    const hashing = fingerprintOf(request);
    const fingerprint = isPromise(hashing) ? await hashing : hashing;
    const parameters = { runtime: this.#runtime, settings, codec: codecFrom(options), dispatch, reconcile, signal };
    const running = run(parameters, id, fingerprint, operation);
    return isPromise(running) ? await running : running;
  }

  async open(request: OpenRequest): Promise<OpenedClaim> {
    checkOptions(request, OPEN_OPTIONS, 'request');
    checkId(request);
    checkCall(request.dispatch, request.signal);
    if (typeof request.fingerprint !== 'string') throw new SubjectError('fingerprint', request.fingerprint);
    return open(this.#runtime, request, this.#settingsFor(request, request.reconcile));
  }

  async inspect(id: ClaimId): Promise<ClaimView | undefined> {
    return this.#runtime.store.inspect(checkId(id));
  }

  async release(id: ClaimId, options: ReleaseOptions = {}): Promise<OperatorRelease> {
    checkOptions(options, ['force', 'note'], 'options');
    const { force = false, note } = options;
    if (typeof force !== 'boolean') throw new OptionError('force', force, 'must be true or false');
    const release = await releaseByOperator(this.#runtime.store, checkId(id), this.settings, force, note);
    if (release === 'released') this.#runtime.waiters.wake(id);
    return release;
  }

  complete(id: ClaimId, value: unknown, options?: NoteOptions): Promise<OperatorCompletion> {
    return this.completeWith(id, encodeValue(value, jsonCodec), options);
  }

  async completeWith(id: ClaimId, result: KeptResult, options: NoteOptions = {}): Promise<OperatorCompletion> {
    checkOptions(options, ['note'], 'options');
    checkResult(result);
    const { retentionMs } = this.settings;
    const completion = await completeByOperator(this.#runtime.store, checkId(id), retentionMs, result, options.note);
    if (completion === 'completed') this.#runtime.waiters.wake(id);
    return completion;
  }

  async reconcile(id: ClaimId, reconcile = this.#reconcile): Promise<OrphanReconciliation> {
    checkFunction('reconcile', reconcile);
    return this.#reconcileOrphan(id, encodeReconciled(reconcile as Reconcile<unknown>, jsonCodec), this.settings);
  }

  async reconcileWith(id: ClaimId, reconcile: Reconcile<KeptResult>): Promise<OrphanReconciliation> {
    checkFunction('reconcile', reconcile);
    const checked: Reconcile<KeptResult> = async (about) => {
      const answer = await reconcile(about);
      if (Object(answer).done === true) checkResult((answer as { readonly result: unknown }).result);
      return answer;
    };
    // Its caller encoded the value, as the caller of `completeWith` did.
    return this.#reconcileOrphan(id, checked, { ...this.settings, maxKeptBytes: Number.MAX_SAFE_INTEGER });
  }

  async #reconcileOrphan(
    id: ClaimId,
    reconcile: Reconcile<KeptResult>,
    settings: ClaimSettings,
  ): Promise<OrphanReconciliation> {
    if (this.#runtime.closed) throw new ClosedError('this idempotency instance');
    return reconcileOrphan(this.#runtime, checkId(id), settings, reconcile);
  }

  idle(): Promise<void> {
    return this.#runtime.idle();
  }

  async close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    const timeoutMs = closeTimeoutOf(options);
    this.#closing ??= this.#close(timeoutMs);
    await this.#closing;
  }

  async #close(timeoutMs: number): Promise<void> {
    const runtime = this.#runtime;
    runtime.close();
    let cancelTimeout = (): void => {};
    const timeout = new Promise<void>((resolve) => {
      cancelTimeout = runtime.timers.after(timeoutMs, resolve, false);
    });
    await Promise.race([runtime.idle(), timeout]);
    cancelTimeout();
    runtime.stop();
    await runtime.store.close?.();
  }

  #settingsFor(given: SettingsInput, reconcile: unknown): ClaimSettings {
    const settings = given === NO_OPTIONS ? this.settings : settingsOf(given, this.settings);
    if (reconcile !== undefined || settings.onOrphan === 'reconcile')
      checkFunction('reconcile', reconcile, 'must be a function if onOrphan is "reconcile"');
    return settings;
  }
}

function checkFunction(option: string, value: unknown, reason = 'must be a function'): void {
  if (typeof value !== 'function') throw new OptionError(option, value, reason);
}

/** @throws OptionError that does not show the result, which is a client's data */
function checkResult(result: unknown): void {
  const { status, value } = Object(result) as Partial<KeptResult>;
  if (typeof status !== 'string' || (value !== undefined && typeof value !== 'string'))
    throw new OptionError('result', undefined, 'must be { status, value }, as storedResponse() returns', typeof result);
}

function checkCall(dispatch: string, signal: AbortSignal | undefined): void {
  checkOneOf('dispatch', dispatch, ['automatic', 'explicit']);
  if (signal !== undefined) checkMethods('signal', signal, ['addEventListener'], ', as an AbortSignal does');
}

/** @throws SubjectError, OptionError */
export function checkId(id: string | ClaimId): ClaimId {
  const { scope, key } = typeof id === 'string' ? { scope: '', key: id } : id;
  if (typeof scope !== 'string') throw new SubjectError('scope', scope);
  if (typeof key !== 'string') throw new SubjectError('key', key);
  if (key === '') throw new OptionError('key', key, 'must not be empty');
  return { scope, key };
}

/** JSON by default. Whether JSON can represent `T` is known only to the caller. */
export function codecFrom<T>(options: Partial<ResultCodec<T>>): ResultCodec<T> {
  checkFunctions(options, ['serialize', 'deserialize']);
  const { serialize, deserialize } = options;
  const codec = jsonCodec as ResultCodec<T>;
  return { serialize: serialize ?? codec.serialize, deserialize: deserialize ?? codec.deserialize };
}

/** @throws OptionError */
export function closeTimeoutOf(options: { readonly timeoutMs?: number | undefined }): number {
  checkOptions(options, ['timeoutMs'], 'options');
  const { timeoutMs = CLOSE_TIMEOUT_MS } = options;
  if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0))
    throw new OptionError('timeoutMs', timeoutMs, 'must be a number of milliseconds, 0 or more');
  return timeoutMs;
}
