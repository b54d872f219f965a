import { inSlices } from '../base/slices.ts';
import { Turns } from '../base/turns.ts';
import {
  type Adjustment,
  type AdjustmentEntry,
  type AdjustmentState,
  applyEntry,
  type Head,
  isSameHead,
  targetKey,
  withEntry,
} from '../core/adjustment.ts';
import { type AdjustmentReply, reconcile } from './lineage.ts';
import type { AdjustmentStore } from './ports.ts';

/** Rounds of reading and restoring, or of appending, before a call gives up: other processes change the store. */
const MAX_ROUNDS = 50;
/** Longest wait between two changes of one process if no other made one in between. */
const COURTESY_MS = 5;

/** Receives the entries that a replica reads, while it reads. */
export interface ReplicaObserver {
  /** The store answered. */
  onReply(reply: AdjustmentReply): void;
  /** The replica equals the store. */
  onRead(): void;
  /** The adjustments changed. */
  onChange(entry: AdjustmentEntry): void;
  /**
   * Everything was read. Prepares for these adjustments, which may take long, in slices. The function that it returns
   * is called in the step in which the replica takes them over, with the changes of this process among them that the
   * store had not acknowledged.
   */
  prepare(adjustments: ReadonlyMap<string, Adjustment>): Promise<(unacknowledged: readonly AdjustmentEntry[]) => void>;
  /** The store's history was replaced by this process's knowledge. */
  onRestore(): void;
  /** The store's history is another one, which this process follows now, without the changes `lost`. */
  onFork(lost: readonly AdjustmentEntry[]): void;
}

/** One process's knowledge of a store's adjustments. It follows the store, and restores entries that the store lost. */
export class Replica {
  readonly #store: AdjustmentStore;
  readonly #observer: ReplicaObserver | undefined;
  readonly #decide: typeof reconcile;
  #adjustments = new Map<string, Adjustment>();
  #known: Pick<AdjustmentState, 'head' | 'recent'> | undefined;
  /** A change of this process to which the store did not reply yet. */
  #unacknowledged: Head | undefined;
  /** The last change of this process. */
  #written: Head | undefined;
  #isAhead = false;
  readonly #isReadOnly: boolean;
  /** Calls run one after the other, since each begins at the head that the one before left. */
  readonly #turns = new Turns();

  constructor(store: AdjustmentStore, observer?: ReplicaObserver, { decide = reconcile, isReadOnly = false } = {}) {
    this.#store = store;
    this.#observer = observer;
    this.#decide = decide;
    this.#isReadOnly = isReadOnly;
  }

  /** Undefined if this process does not know any history. */
  get head(): Head | undefined {
    return this.#known?.head;
  }

  /** Whether the store lacks entries that this process knows but may not restore. */
  get isAhead(): boolean {
    return this.#isAhead;
  }

  /** By `targetKey`. */
  get adjustments(): ReadonlyMap<string, Adjustment> {
    return this.#adjustments;
  }

  /** Everything that this process knows; undefined without any history. */
  get state(): AdjustmentState | undefined {
    return this.#known && { ...this.#known, adjustments: [...this.#adjustments.values()] };
  }

  /**
   * Begins with an earlier process's knowledge, before any other call.
   * @param load returns it
   * @throws what `load` throws
   */
  begin(load: () => Promise<AdjustmentState | undefined>): Promise<void> {
    return this.#turns.run(async () => {
      const state = await load();
      if (state !== undefined) await this.#adopt(state, false);
    });
  }

  /** The same knowledge over the same adjustments in a transaction: what is read and changed there stays there. */
  async copyOver(transaction: AdjustmentStore): Promise<Replica> {
    const copy = new Replica(transaction);
    await copy.begin(async () => this.state);
    return copy;
  }

  /**
   * Reads the store, and brings it forward if it lacks entries that this process knows.
   * @param instance see {@link AdjustmentStore.read}
   * @throws the store's errors
   */
  refresh(instance?: string): Promise<void> {
    return this.#turns.run(() => this.#refresh(instance));
  }

  /**
   * Stores a change on top of the store's history.
   * @param create creates the entry that follows the head; may be called again. Undefined changes nothing
   * @throws the errors of the store or of `create`
   */
  append(create: (head: Head | undefined) => AdjustmentEntry | undefined): Promise<AdjustmentEntry | undefined> {
    return this.#turns.run(async () => {
      let entry: AdjustmentEntry | undefined;
      // A process that was refused must read more, and would be later each time.
      if (this.#written !== undefined && this.#written === this.head) await elapsed(Math.random() * COURTESY_MS);
      for (let round = 0; round < MAX_ROUNDS; round++) {
        // A process that just wrote must read too: otherwise it is always faster than one that was refused.
        await this.#refresh();
        // A client that connects again may send a command twice. The second one is refused, because the first was not.
        if (entry !== undefined && this.#knows(entry)) return entry;
        entry = create(this.head);
        if (entry === undefined) return undefined;
        this.#unacknowledged = entry;
        const isStored = await this.#store.append(this.head, entry);
        this.#unacknowledged = undefined;
        if (isStored) {
          await this.#apply([entry]);
          this.#written = this.head;
          return entry;
        }
      }
      throw new Error(`the adjustments could not be changed: ${MAX_ROUNDS} other changes came first. Try again`);
    });
  }

  #knows(head: Head): boolean {
    return this.#known?.recent.some((each) => isSameHead(each, head)) ?? false;
  }

  async #refresh(instance?: string): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const reply = await this.#store.read(this.head, instance);
      this.#observer?.onReply(reply);
      const step = this.#decide(this.#known, reply);
      this.#isAhead = false;
      switch (step.kind) {
        case 'restore':
          this.#isAhead = this.#isReadOnly;
          if (this.#isReadOnly) break;
          if (await this.#store.restore(step.seen, this.state as AdjustmentState)) this.#observer?.onRestore();
          continue;
        case 'apply':
          await this.#apply(step.entries);
          break;
        case 'adopt':
          await this.#adopt(step.state, step.forked);
      }
      this.#observer?.onRead();
      return;
    }
  }

  /** Each entry is a whole change, so a decision between two of them is right too. */
  #apply(entries: readonly AdjustmentEntry[]): Promise<void> {
    return inSlices(entries, (entry) => {
      applyEntry(this.#adjustments, entry);
      this.#known = { head: headOf(entry), recent: withEntry(this.#known?.recent ?? [], entry) };
      if (isSameHead(entry, this.#unacknowledged)) this.#unacknowledged = undefined;
      this.#observer?.onChange(entry);
    });
  }

  async #adopt({ head, recent, adjustments }: AdjustmentState, forked: boolean): Promise<void> {
    const next = new Map<string, Adjustment>();
    await inSlices(adjustments, (each) => next.set(targetKey(each.target), each));
    const takeOver = await this.#observer?.prepare(next);
    const before = this.#known?.recent ?? [];
    this.#known = { head, recent };
    this.#adjustments = next;
    const stored = recent.filter((entry) => isSameHead(entry, this.#unacknowledged));
    if (stored.length > 0) this.#unacknowledged = undefined;
    takeOver?.(stored);
    if (!forked) return;
    const kept = new Set(recent.map(({ nonce }) => nonce));
    const oldest = recent[0]?.version ?? 0;
    this.#observer?.onFork(before.filter(({ version, nonce }) => version >= oldest && !kept.has(nonce)));
  }
}

function headOf({ version, nonce }: Head): Head {
  return { version, nonce };
}

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
