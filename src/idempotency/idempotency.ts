import type { KeptResult } from '../core/claim.ts';
import { ClosedError, OptionError, SubjectError } from '../core/errors.ts';
import { isPromise } from '../core/maybe-promise.ts';
import { checkOptions } from '../core/options.ts';
import type { ClaimId, ClaimStore, ClaimView } from '../core/ports.ts';
import { Engine } from './engine.ts';
import type { IdempotencyEvent } from './events.ts';
import { fingerprintOf } from './fingerprint.ts';
import { type Opened, type OpenRequest, open, type Reconcile } from './open.ts';
import { complete, type OperatorCompletion, type OperatorRelease, release } from './operator.ts';
import { type Codec, json, keptValue } from './outcome.ts';
import { type Operation, type RunOptions, type RunResult, run } from './run.ts';
import { type ClaimSettings, DEFAULT_SETTINGS, SETTING_NAMES, type SettingsInput, settingsOf } from './settings.ts';
import { createSystemTimers, type Timers } from './timers.ts';

export type { Unavailable } from './attempt.ts';
export type { Claim, Completion, Dispatch, Release } from './claim.ts';
export type { IdempotencyEvent } from './events.ts';
export type {
  Opened,
  OpenRequest,
  Reconcile,
  Reconciled,
  Reconciliation,
} from './open.ts';
export type { OperatorCompletion, OperatorRelease } from './operator.ts';
export { type Codec, KeptFailureError, notExecuted } from './outcome.ts';
export type { Refusal, Refused } from './refusal.ts';
export type { Operation, OperationContext, RunOptions, RunResult } from './run.ts';
export type { ClaimSettings, SettingsInput } from './settings.ts';
export type { Timers } from './timers.ts';

/** Options of {@link createIdempotency}. The settings hold for every call that does not bring its own. */
export interface IdempotencyOptions extends SettingsInput {
  /** Where claims live. Closed by {@link Idempotency.close}. */
  readonly store: ClaimStore;
  /** Asks what became of an orphan, for every `run` that does not bring its own (I9). */
  readonly reconcile?: Reconcile<unknown> | undefined;
  /** Hears of everything that happens to a claim. */
  readonly onEvent?: ((event: IdempotencyEvent) => void) | undefined;
  /**
   * Time, for tests.
   * @default the platform's
   */
  readonly timers?: Timers | undefined;
}

/** One key, one request, one execution, one result. */
export interface Idempotency {
  /** What holds where a call brings nothing of its own. */
  readonly settings: ClaimSettings;
  /**
   * Executes the operation once for the key, and gives everybody else that execution's outcome.
   * @param key a string, or with the scope that it belongs to: one tenant can neither replay nor probe another's (I2)
   * @param request what the key stands for; another request under the same key is refused. Text, bytes or JSON
   * @throws what the operation throws where nothing was dispatched, or where it says `notExecuted`; the key is given back then.
   * OptionError, SubjectError, ClosedError
   */
  run<T>(
    key: string | ClaimId,
    request: unknown,
    operation: Operation<T>,
    options?: RunOptions<T>,
  ): Promise<RunResult<T>>;
  /**
   * What `run` is made of, for those who execute by other means, such as the gate.
   * @throws OptionError
   */
  open(request: OpenRequest): Promise<Opened>;
  /** For an operator: what stands under the key; changes nothing. */
  inspect(id: ClaimId): Promise<ClaimView | undefined>;
  /**
   * For an operator: gives the key of an orphan back, whose effect is known not to have happened.
   * @param options.force also where its owner's lease runs
   */
  release(id: ClaimId, options?: { readonly force?: boolean | undefined }): Promise<OperatorRelease>;
  /** For an operator: settles an orphan with the value that `run` would have kept. */
  complete(id: ClaimId, value: unknown): Promise<OperatorCompletion>;
  /** `complete` for what `open` has claimed. */
  completeWith(id: ClaimId, result: KeptResult): Promise<OperatorCompletion>;
  /** Claims that this process holds now. */
  readonly held: number;
  /** Duplicates that wait for an original now (I5). */
  readonly waiting: number;
  /** Commands that are tried in the background until they are acknowledged. */
  readonly pending: number;
  /** Resolves once `held` and `pending` are 0. */
  idle(): Promise<void>;
  /**
   * Refuses new calls and ends all waiting, lets what runs finish for `timeoutMs`, then stops every timer and closes the store.
   * @param options.timeoutMs default 5,000
   */
  close(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
}

const COMMANDS = ['begin', 'extend', 'dispatch', 'complete', 'abandon', 'inspect'] as const;
const RUN_OPTIONS = /* @__PURE__ */ (SETTING_NAMES as string[]).concat(
  'dispatch',
  'reconcile',
  'signal',
  'serialize',
  'deserialize',
);
const OPEN_OPTIONS = /* @__PURE__ */ (SETTING_NAMES as string[]).concat(
  'scope',
  'key',
  'fingerprint',
  'dispatch',
  'reconcile',
  'signal',
);
const NO_OPTIONS = /* @__PURE__ */ Object.freeze({});
const CLOSE_MS = 5_000;

/**
 * @example
 * ```ts
 * const idempotency = createIdempotency({ store: createMemoryClaimStore() });
 * const result = await idempotency.run(key, mail, () => provider.send(mail));
 * if (result.kind === 'executed' || result.kind === 'replayed') return result.value;
 * ```
 * @throws OptionError naming what is wrong
 */
export function createIdempotency(options: IdempotencyOptions): Idempotency {
  checkOptions(options, ['store', 'reconcile', 'onEvent', 'timers', ...SETTING_NAMES], 'options');
  const { store, reconcile, onEvent, timers = createSystemTimers() } = options;
  for (const command of COMMANDS) {
    if (typeof store?.[command] !== 'function')
      throw new OptionError('store', store, `must have ${command}(), as a ClaimStore does`);
  }
  if (onEvent !== undefined) checkFunction('onEvent', onEvent);
  if (reconcile !== undefined) checkFunction('reconcile', reconcile);
  return new StoreIdempotency(new Engine(store, timers, onEvent), settingsOf(options, DEFAULT_SETTINGS), reconcile);
}

class StoreIdempotency implements Idempotency {
  readonly #engine: Engine;
  readonly settings: ClaimSettings;
  readonly #reconcile: Reconcile<unknown> | undefined;
  #closing: Promise<void> | undefined;

  constructor(engine: Engine, settings: ClaimSettings, reconcile: Reconcile<unknown> | undefined) {
    this.#engine = engine;
    this.settings = settings;
    this.#reconcile = reconcile;
  }

  get held(): number {
    return this.#engine.held;
  }

  get waiting(): number {
    return this.#engine.waiters.size;
  }

  get pending(): number {
    return this.#engine.background.pending;
  }

  async run<T>(
    key: string | ClaimId,
    request: unknown,
    operation: Operation<T>,
    options: RunOptions<T> = NO_OPTIONS,
  ): Promise<RunResult<T>> {
    if (this.#engine.closed) throw new ClosedError('the idempotency');
    if (options !== NO_OPTIONS) checkOptions(options, RUN_OPTIONS, 'options');
    const id = checkId(typeof key === 'string' ? { scope: '', key } : key);
    // Before anything is claimed: its outcome would be kept.
    checkFunction('operation', operation);
    // What its values are, only whoever wrote it knows.
    const { dispatch = 'automatic', reconcile = this.#reconcile as Reconcile<T> | undefined, signal } = options;
    checkDispatch(dispatch);
    const settings = this.#settingsOf(options, reconcile);
    const printing = fingerprintOf(request);
    const fingerprint = isPromise(printing) ? await printing : printing;
    const plan = { engine: this.#engine, settings, codec: codecOf(options), dispatch, reconcile, signal };
    const running = run(plan, id, fingerprint, operation);
    return isPromise(running) ? await running : running;
  }

  async open(request: OpenRequest): Promise<Opened> {
    checkOptions(request, OPEN_OPTIONS, 'request');
    checkId(request);
    checkDispatch(request.dispatch);
    if (typeof request.fingerprint !== 'string') throw new SubjectError('fingerprint', request.fingerprint);
    return open(this.#engine, request, this.#settingsOf(request, request.reconcile));
  }

  async inspect(id: ClaimId): Promise<ClaimView | undefined> {
    return this.#engine.store.inspect(checkId(id));
  }

  async release(
    id: ClaimId,
    { force = false }: { readonly force?: boolean | undefined } = {},
  ): Promise<OperatorRelease> {
    const outcome = await release(this.#engine.store, checkId(id), this.settings.retentionMs, force);
    if (outcome === 'released') this.#engine.waiters.wake(id);
    return outcome;
  }

  complete(id: ClaimId, value: unknown): Promise<OperatorCompletion> {
    return this.completeWith(id, keptValue(value, json));
  }

  async completeWith(id: ClaimId, result: KeptResult): Promise<OperatorCompletion> {
    const outcome = await complete(this.#engine.store, checkId(id), this.settings.retentionMs, result);
    if (outcome === 'completed') this.#engine.waiters.wake(id);
    return outcome;
  }

  idle(): Promise<void> {
    return this.#engine.idle();
  }

  close({ timeoutMs = CLOSE_MS }: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  }

  async #close(timeoutMs: number): Promise<void> {
    const engine = this.#engine;
    engine.close();
    let cancel = (): void => {};
    const late = new Promise<void>((resolve) => {
      cancel = engine.timers.after(timeoutMs, resolve, false);
    });
    await Promise.race([engine.idle(), late]);
    cancel();
    engine.stop();
    await engine.store.close?.();
  }

  #settingsOf(given: SettingsInput, reconcile: unknown): ClaimSettings {
    const settings = given === NO_OPTIONS ? this.settings : settingsOf(given, this.settings);
    if (reconcile !== undefined || settings.onOrphan === 'reconcile')
      checkFunction('reconcile', reconcile, 'must be a function where onOrphan is "reconcile"');
    return settings;
  }
}

function checkFunction(option: string, value: unknown, expected = 'must be a function'): void {
  if (typeof value !== 'function') throw new OptionError(option, value, expected);
}

function checkDispatch(dispatch: string): void {
  if (dispatch !== 'automatic' && dispatch !== 'explicit')
    throw new OptionError('dispatch', dispatch, 'must be one of automatic, explicit');
}

function checkId(id: ClaimId): ClaimId {
  const { scope, key } = id;
  if (typeof scope !== 'string') throw new SubjectError('scope', scope);
  if (typeof key !== 'string') throw new SubjectError('key', key);
  if (key === '') throw new OptionError('key', key, 'must not be empty');
  return { scope, key };
}

/** What `T` is, only the caller knows. */
function codecOf<T>({ serialize, deserialize }: Partial<Codec<T>>): Codec<T> {
  const codec = json as Codec<T>;
  return { serialize: serialize ?? codec.serialize, deserialize: deserialize ?? codec.deserialize };
}
