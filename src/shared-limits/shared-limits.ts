import type { Logger } from '../base/logger.ts';
import type { AdjustedLimit, Adjustment, AdjustmentEntry, AdjustTarget } from '../core/adjustment.ts';
import type { LimitInput } from '../core/limit.ts';
import type { Limits, Subject, WindowSetSource } from '../limits/window-set-source.ts';
import type { ChangeOptions, LimitChange, PutOptions } from './change.ts';
import type { LimitOrigin } from './explanation.ts';
import type { AdjustmentStore, KeptFile } from './ports.ts';
import type { LimitPreview } from './preview.ts';

/** Options of {@link createSharedLimits}. */
export interface SharedLimitsOptions {
  /** The limits without any adjustment, as `createLimiter` takes them. A function must not return a promise. */
  readonly base: Limits;
  /**
   * What windows can count beside requests, such as `['tokens']` (S33), in addition to the units in the base: those of a
   * function, or of adjustments.
   * @default the units of the windows in the base
   */
  readonly units?: readonly string[] | undefined;
  /** Where adjustments are stored, e.g. `createRedisAdjustments(client)`. {@link SharedLimits.close} closes it. */
  readonly adjustments: AdjustmentStore;
  /**
   * Where this process keeps a copy of its last knowledge, e.g. `createKeptFile(path)` of `headgate/file`. It applies
   * from a start on while the store is away, and restores a store that lost its data. A store with another history
   * wins.
   */
  readonly keptFile?: KeptFile | undefined;
  /**
   * Whether this process only reads: it obeys the adjustments, but never changes or restores them, and is not among
   * `instances()`. A user of Redis that may only read is enough then.
   * @default false
   */
  readonly readOnly?: boolean | undefined;
  /**
   * How often the store is read, in milliseconds: 10 to 60,000.
   * @default 500
   */
  readonly refreshMs?: number | undefined;
  /**
   * Most adjustments that there may be: 1 to 100,000. Each process keeps all of them in memory.
   * @default 10_000
   */
  readonly maxAdjustments?: number | undefined;
  /**
   * Name of this process in the list of `instances()`: 1 to 200 characters, different for each.
   * @default host, process id and four random characters
   */
  readonly instance?: string | undefined;
  /** Is called with everything that happens, for metrics and logs. Its errors are logged. */
  readonly onEvent?: ((event: SharedLimitsEvent) => void) | undefined;
  /**
   * Is called if changes are lost after a fork, or cannot be read, and if adjustments hide a change of the base. False:
   * nothing is logged.
   * @default console.error
   */
  readonly logger?: Logger | false | undefined;
}

/** An event of shared limits. */
export type SharedLimitsEvent =
  /**
   * Other adjustments apply from now on in this process. If everything was read at once, `entries` has only what this
   * process had changed without an answer of the store.
   */
  | { readonly type: 'changed'; readonly revision: string; readonly entries: readonly AdjustmentEntry[] }
  /** The store had lost changes, and this process gave them back. */
  | { readonly type: 'restored'; readonly revision: string }
  /** The store's history is not the one that this process knew. These changes are gone. */
  | { readonly type: 'forked'; readonly revision: string; readonly lost: readonly AdjustmentEntry[] }
  /**
   * The base has other limits than before beneath these adjustments: after `rebase`, or because its function returned
   * others. They do not apply until the adjustments are reset or over.
   */
  | { readonly type: 'hidden'; readonly adjustments: readonly Adjustment[] }
  /** The store could not be read. The last known adjustments apply. `isFirst`: the reading before it succeeded. */
  | { readonly type: 'failed'; readonly error: unknown; readonly isFirst: boolean }
  /** The store was read again. */
  | { readonly type: 'recovered' }
  /**
   * The kept file could not be read: then it stays as it is, and nothing is kept. Or it could not be written: then each
   * reading tries again, and the event comes once.
   */
  | { readonly type: 'notKept'; readonly error: unknown };

/** A process's knowledge of the adjustments. */
export interface SharedLimitsState {
  /** The last change that this process obeys, such as `17.k3v9q2`; `0` if there was none. */
  readonly revision: string;
  /** The number of that change; 0 if there was none. */
  readonly version: number;
  /**
   * `store`: the last reading succeeded. `kept`: it failed, or the store lost entries that this process may not
   * restore; the last known apply. `file`: none succeeded so far, and the kept file's adjustments apply. `base`: the
   * same without such a file.
   */
  readonly source: 'store' | 'kept' | 'file' | 'base';
  /** Milliseconds since the store was read; undefined before. */
  readonly ageMs: number | undefined;
  /** Whether the adjustments outlive every process. */
  readonly durable: boolean;
  /** Adjustments that apply. */
  readonly adjustments: number;
  /** Adjustments that this version of headgate cannot read, or that do not fit the base. They do not apply here. */
  readonly unusable: number;
}

/** A change that is stored. */
export interface Changed {
  /** For {@link SharedLimits.applied}; `0` if nothing was ever adjusted. */
  readonly revision: string;
  /** Version of the adjustments that it set; 0 if nothing was ever adjusted. */
  readonly version: number;
  /** Its effects. Empty if it reset only limits that were not adjusted. */
  readonly limits: readonly AdjustedLimit[];
}

/** Which entries of the history to return. */
export interface HistoryQuery {
  /** Only entries with a version below this one. */
  readonly before?: number | undefined;
  /**
   * Most entries: 1 to 1,000.
   * @default 100
   */
  readonly limit?: number | undefined;
  /** Only changes of this limit, of the last 20,000 changes. */
  readonly target?: AdjustTarget | undefined;
}

/** How many processes obey a change. */
export interface Applied {
  readonly instances: number;
  /** Processes that the store heard of in the last ten seconds. */
  readonly of: number;
  /** Those that do not obey it yet. */
  readonly missing: readonly string[];
}

/** A process that reads the adjustments. */
export interface Instance {
  readonly name: string;
  /** The last change that it obeys; `0` if there was none. */
  readonly revision: string;
  /** Milliseconds since the store heard of it. */
  readonly ageMs: number;
}

/** Limits that every process with the same store obeys, and that can be adjusted at run time. */
export interface SharedLimits extends WindowSetSource {
  readonly state: SharedLimitsState;
  /** Name of this process. */
  readonly instance: string;
  /**
   * Waits until the store was read, at most `timeoutMs` (2,000 by default). Never rejects: without the store, the base
   * applies, and {@link SharedLimits.state} says so.
   */
  ready(options?: { readonly timeoutMs?: number | undefined }): Promise<void>;
  /**
   * Reads the store now. This process then obeys every change that was acknowledged, or committed, before the call.
   * @throws the store's errors, ClosedError
   */
  refresh(): Promise<void>;
  /** Returns the adjustments that apply. */
  list(): readonly Adjustment[];
  /**
   * Returns where each limit of a subject comes from, and which layers it hides.
   * @param subject without `account`: of an account that has no limits of its own
   */
  explain(subject: Omit<Subject, 'account'> & { readonly account?: string | undefined }): readonly LimitOrigin[];
  /**
   * Returns what these changes would do. Changes nothing.
   * @throws OptionError, LimitError with the place of the fault
   */
  preview(changes: readonly LimitChange[]): readonly LimitPreview[];
  /**
   * Adjusts one limit. It holds here at once, and in every process that reaches the store within `refreshMs` and the
   * store's deadline (S23). With the option `transaction` it is made by your commit.
   * @throws OptionError, LimitError, AdjustmentConflictError, UnconfirmedError, TooManyAdjustmentsError, ReadOnlyError:
   * nothing was changed then. The store's errors: after a StoreTimeoutError the change may be stored, which `list()`
   * shows
   */
  put(target: AdjustTarget, windows: LimitInput | 'recommended', options: PutOptions): Promise<Changed>;
  /** Removes the adjustment of one limit, if there is one. Throws as `put` does. */
  reset(target: AdjustTarget, options: PutOptions): Promise<Changed>;
  /** Makes 1 to 100 changes, all or none. Throws as `put` does. */
  change(changes: readonly LimitChange[], options: ChangeOptions): Promise<Changed>;
  /**
   * Returns changes, the newest first. A store keeps about the last 10,000.
   * @throws OptionError, and the store's errors
   */
  history(query?: HistoryQuery): Promise<readonly AdjustmentEntry[]>;
  /** Returns the processes that the store heard of in the last ten seconds. */
  instances(): Promise<readonly Instance[]>;
  /**
   * Waits until every such process obeys a change, at most `timeoutMs` (2,000 by default).
   * @throws OptionError, and the store's errors
   */
  applied(revision: string, options?: { readonly timeoutMs?: number | undefined }): Promise<Applied>;
  /**
   * Replaces the base, for example after a config was read again. The adjustments stay. With many of them it is
   * prepared in slices, and then applies at once.
   * @throws LimitError, OptionError; then nothing changed
   */
  rebase(base: Limits): Promise<void>;
  /** Stops reading, and closes the store of adjustments. The last known adjustments go on to apply. */
  close(): Promise<void>;
}
