import { Emitter } from '../base/emitter.ts';
import { ClosedError } from '../base/errors.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { type Adjustment, type AdjustmentEntry, type AdjustTarget, targetKey } from '../core/adjustment.ts';
import { monotonicClock } from '../core/clock.ts';
import type { LimitInput } from '../core/limit.ts';
import type { WindowSet } from '../core/window-set.ts';
import type { LayerField, Limits, NamedRoutes, Subject } from '../limits/window-set-source.ts';
import { AdjustedWindowSets } from './adjusted-window-sets.ts';
import { type ChangeOptions, checkChangeOptions, type LimitChange, type PutOptions } from './change.ts';
import {
  adjustedLimits,
  checkRoom,
  checkVersions,
  entryAfter,
  expiryAfter,
  textOfHidden,
  textOfLost,
} from './entry.ts';
import { ReadOnlyError, UnconfirmedError } from './errors.ts';
import type { LimitOrigin } from './explanation.ts';
import { queryHistory } from './history.ts';
import { listInstances, waitUntilApplied } from './instances.ts';
import { KeptCopy } from './kept-copy.ts';
import type { AdjustmentReply } from './lineage.ts';
import { Poll } from './poll.ts';
import type { AdjustmentStore } from './ports.ts';
import type { LimitPreview } from './preview.ts';
import { Replica, type ReplicaObserver } from './replica.ts';
import { revisionOf } from './revision.ts';
import type {
  Applied,
  Changed,
  HistoryQuery,
  Instance,
  SharedLimits,
  SharedLimitsEvent,
  SharedLimitsOptions,
  SharedLimitsState,
} from './shared-limits.ts';

/** Every so many readings the process says that it lives. */
const NOTED_EVERY = 4;
const READY_MS = 2_000;

/** Options whose defaults are filled in. */
type Filled = {
  readonly [Name in 'readOnly' | 'refreshMs' | 'maxAdjustments' | 'instance']: NonNullable<SharedLimitsOptions[Name]>;
};

/** Shared limits that follow a store of adjustments. */
export class StoredLimits implements SharedLimits {
  readonly instance: string;
  readonly #store: AdjustmentStore;
  readonly #kept: KeptCopy | undefined;
  readonly #isReadOnly: boolean;
  readonly #maxAdjustments: number;
  readonly #events: Emitter<SharedLimitsEvent>;
  readonly #log: Logger;
  readonly #replica: Replica;
  readonly #poll: Poll;
  readonly #windowSets: AdjustedWindowSets;
  #unreadable = 0;
  /** The time of the store's clock, and the moment of the reading. */
  #answer: { readonly now: number; readonly at: number } | undefined;
  #hasRead = false;
  #isBehind = false;
  /** Since the process said that it lives. */
  #readings = NOTED_EVERY;

  /** @param settings checked, with the defaults */
  constructor(settings: SharedLimitsOptions & Filled) {
    const { base, adjustments, keptFile, readOnly, refreshMs, onEvent, logger } = settings;
    this.instance = settings.instance;
    this.#windowSets = new AdjustedWindowSets(
      base,
      (adjustment) => this.#isOver(adjustment),
      (adjustments) => this.#onHidden(adjustments),
      settings.units,
    );
    this.#store = adjustments;
    this.#isReadOnly = readOnly;
    this.#maxAdjustments = settings.maxAdjustments;
    this.#log = createLogger(logger);
    this.#events = new Emitter(onEvent, this.#log);
    const observer: ReplicaObserver = {
      onReply: (reply) => this.#onReply(reply),
      onRead: () => {
        this.#hasRead = true;
      },
      onChange: (entry) => this.#onChange(entry),
      prepare: (adjustments) => this.#prepare(adjustments),
      onRestore: () => this.#events.emit({ type: 'restored', revision: this.#revision }),
      onFork: (lost) => this.#onFork(lost),
    };
    this.#replica = new Replica(adjustments, observer, { isReadOnly: readOnly });
    if (keptFile !== undefined) {
      const kept = new KeptCopy(keptFile, (error) => this.#onNotKept(error));
      this.#kept = kept;
      void this.#replica.begin(() => kept.load()).catch((error) => this.#onNotKept(error));
    }
    this.#poll = new Poll(() => this.#read(), refreshMs);
  }

  get state(): SharedLimitsState {
    return {
      revision: this.#revision,
      version: this.#replica.head?.version ?? 0,
      source: this.#source,
      ageMs: this.#answer && monotonicClock.now() - this.#answer.at,
      durable: this.#store.durable,
      adjustments: this.#windowSets.size,
      unusable: this.#unreadable + this.#windowSets.unfit,
    };
  }

  get #source(): SharedLimitsState['source'] {
    if (this.#hasRead) return this.#isBehind || this.#replica.isAhead ? 'kept' : 'store';
    // Without a reading, only the file can have told of a history.
    return this.#replica.head === undefined ? 'base' : 'file';
  }

  get limitedRoutes(): readonly string[] {
    return this.#windowSets.limitedRoutes;
  }

  get layerFields(): readonly LayerField[] {
    return this.#windowSets.layerFields;
  }

  get groups(): readonly string[] | undefined {
    return this.#windowSets.groups;
  }

  get lanes(): readonly string[] | undefined {
    return this.#windowSets.lanes;
  }

  get longestMs(): number {
    return this.#windowSets.longestMs;
  }

  get needsRoute(): boolean {
    return this.#windowSets.needsRoute;
  }

  get units(): readonly string[] {
    return this.#windowSets.units;
  }

  namedRoutes(subject: Subject): MaybePromise<NamedRoutes> {
    return this.#windowSets.namedRoutes(subject);
  }

  windowSet(subject: Subject): WindowSet {
    return this.#windowSets.windowSet(subject);
  }

  ready({ timeoutMs = READY_MS }: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    return this.#poll.waitUntil(() => this.#hasRead, timeoutMs);
  }

  list(): readonly Adjustment[] {
    return this.#windowSets.applied;
  }

  async refresh(): Promise<void> {
    this.#checkOpen();
    await this.#replica.refresh();
    this.#readings = NOTED_EVERY;
    this.#poll.now();
  }

  explain(subject: Omit<Subject, 'account'> & { readonly account?: string | undefined }): readonly LimitOrigin[] {
    // No account has this name among the adjustments.
    return this.#windowSets.explain({ ...subject, account: subject.account ?? '' });
  }

  preview(changes: readonly LimitChange[]): readonly LimitPreview[] {
    return this.#windowSets.preview(this.#windowSets.check(changes));
  }

  put(target: AdjustTarget, windows: LimitInput | 'recommended', options: PutOptions): Promise<Changed> {
    const { ifVersion, subject, ...rest } = { ...options };
    return this.change([{ target, windows, ifVersion, subject }], rest);
  }

  reset(target: AdjustTarget, options: PutOptions): Promise<Changed> {
    return this.put(target, 'recommended', options);
  }

  async change(changes: readonly LimitChange[], options: ChangeOptions): Promise<Changed> {
    this.#checkOpen();
    if (this.#isReadOnly) throw new ReadOnlyError();
    const checked = this.#windowSets.check(changes);
    const { by, reason, confirm, transaction } = { ...options };
    // A fault is an error without the store too. The store's clock may show another time.
    checkChangeOptions(options, this.#now);
    const replica = transaction === undefined ? this.#replica : await this.#replica.copyOver(transaction);
    const entry = await replica.append((head) => {
      const until = checkChangeOptions(options, this.#now);
      checkVersions(checked, (key) => this.#current(replica, key));
      const warnings = this.#windowSets.preview(checked).flatMap((each) => each.warnings);
      if (warnings.length > 0 && confirm !== true) throw new UnconfirmedError(warnings);
      const limits = adjustedLimits(checked, replica.adjustments, until);
      checkRoom(checked, replica.adjustments, this.#maxAdjustments);
      return limits.length === 0
        ? undefined
        : entryAfter(head, { at: this.#now, by, reason, source: 'change', limits });
    });
    if (transaction === undefined) {
      // Says at once that this process obeys it.
      this.#readings = NOTED_EVERY;
      this.#poll.now();
    }
    const head = entry ?? replica.head;
    return { revision: revisionOf(head), version: head?.version ?? 0, limits: entry?.limits ?? [] };
  }

  history(query?: HistoryQuery): Promise<readonly AdjustmentEntry[]> {
    return queryHistory(this.#store, query);
  }

  instances(): Promise<readonly Instance[]> {
    return listInstances(this.#store);
  }

  applied(revision: string, options: { readonly timeoutMs?: number | undefined } = {}): Promise<Applied> {
    return waitUntilApplied(this.#store, revision, options.timeoutMs);
  }

  async rebase(base: Limits): Promise<void> {
    const takeOver = await this.#windowSets.prepare(this.#replica.adjustments, base);
    takeOver(this.#replica.adjustments);
  }

  async close(): Promise<void> {
    if (!this.#poll.close()) return;
    await this.#poll.idle();
    await this.#kept?.close(this.#replica.state);
    await this.#store.close?.();
  }

  /** One reading, and the end of adjustments that are over. */
  async #read(): Promise<void> {
    const isNoted = !this.#isReadOnly && this.#readings >= NOTED_EVERY;
    const before = this.#replica.head;
    try {
      await this.#replica.refresh(isNoted ? this.instance : undefined);
      // Others wait to hear that this process obeys the change.
      if (!this.#isReadOnly && this.#replica.head !== before) await this.#replica.refresh(this.instance);
      this.#readings = isNoted ? 1 : this.#readings + 1;
      if (this.#isBehind) this.#events.emit({ type: 'recovered' });
      this.#isBehind = false;
    } catch (error) {
      this.#events.emit({ type: 'failed', error, isFirst: !this.#isBehind });
      this.#isBehind = true;
    }
    await this.#end(this.#over());
    this.#kept?.follow(this.#replica.state);
  }

  /** Has the window sets forget adjustments that are over, and the store too. */
  async #end(over: readonly Adjustment[]): Promise<void> {
    if (over.length === 0) return;
    const keys = over.map(({ target }) => targetKey(target));
    this.#windowSets.apply(keys, this.#replica.adjustments);
    // Another process may come first, or the store may be away: the next reading tries again.
    if (!this.#isReadOnly)
      await this.#replica.append((head) => expiryAfter(head, this.#over(), this.#now)).catch(() => undefined);
  }

  /** Adjustments that reached their ends, and are still in the store. */
  #over(): readonly Adjustment[] {
    return [...this.#replica.adjustments.values()].filter((each) => this.#isOver(each));
  }

  #onReply(reply: AdjustmentReply): void {
    this.#answer = { now: reply.now, at: monotonicClock.now() };
    const unreadable = 'unreadable' in reply ? (reply.unreadable ?? 0) : 0;
    if (reply.kind === 'all') this.#unreadable = unreadable;
    else this.#unreadable += unreadable;
    if (unreadable > 0)
      this.#log(`headgate: ${unreadable} adjustments cannot be read by this version, and do not apply here`, undefined);
  }

  #onChange(entry: AdjustmentEntry): void {
    const keys = entry.limits.map(({ target }) => targetKey(target));
    this.#windowSets.apply(keys, this.#replica.adjustments);
    this.#events.emit({ type: 'changed', revision: this.#revision, entries: [entry] });
  }

  async #prepare(adjustments: ReadonlyMap<string, Adjustment>) {
    const takeOver = await this.#windowSets.prepare(adjustments);
    return (entries: readonly AdjustmentEntry[]): void => {
      takeOver();
      this.#events.emit({ type: 'changed', revision: this.#revision, entries });
    };
  }

  #onFork(lost: readonly AdjustmentEntry[]): void {
    for (const entry of lost) this.#log(textOfLost(entry), undefined);
    this.#events.emit({ type: 'forked', revision: this.#revision, lost });
  }

  #onHidden(adjustments: readonly Adjustment[]): void {
    this.#log(textOfHidden(adjustments), undefined);
    this.#events.emit({ type: 'hidden', adjustments });
  }

  #onNotKept(error: unknown): void {
    this.#log('headgate: the kept file of the adjustments cannot be used', error);
    this.#events.emit({ type: 'notKept', error });
  }

  /** The adjustment of the store that is not over. */
  #current(replica: Replica, key: string): Adjustment | undefined {
    const adjustment = replica.adjustments.get(key);
    return adjustment === undefined || this.#isOver(adjustment) ? undefined : adjustment;
  }

  #isOver({ until }: Adjustment): boolean {
    return until !== undefined && until <= this.#now;
  }

  /** The store's clock now, as far as this process knows it. */
  get #now(): number {
    const now = monotonicClock.now();
    return this.#answer === undefined ? now : this.#answer.now + now - this.#answer.at;
  }

  get #revision(): string {
    return revisionOf(this.#replica.head);
  }

  #checkOpen(): void {
    if (this.#poll.isClosed) throw new ClosedError('the shared limits');
  }
}
