import {
  type Adjustment,
  type AdjustmentEntry,
  type AdjustmentState,
  applyEntry,
  type Head,
  isSameHead,
  targetKey,
  withEntry,
} from '../../core/adjustment.ts';
import { type AdjustmentReply, reconcile } from '../../core/lineage.ts';
import type { AdjustmentStore } from '../../core/ports.ts';
import { Turns } from '../../core/turns.ts';

/** Rounds of reading and restoring, or of appending, before a call gives up: other processes change the store. */
const MAX_ROUNDS = 50;

/** Receives what a replica reads, while it reads. */
export interface ReplicaObserver {
  /** The store has answered. */
  onReply(reply: AdjustmentReply): void;
  /** These adjustments have changed, by `targetKey`. `entries` is empty if everything was read at once. */
  onChange(keys: Iterable<string>, entries: readonly AdjustmentEntry[]): void;
  /** The store's history was replaced by what this process knows. */
  onRestore(): void;
  /** The store has another history, which this process follows now. It does not have the changes `lost`. */
  onFork(lost: readonly AdjustmentEntry[]): void;
}

/** What one process knows of a store's adjustments. It follows the store, and gives back what the store has lost. */
export class Replica {
  readonly #store: AdjustmentStore;
  readonly #observer: ReplicaObserver | undefined;
  readonly #decide: typeof reconcile;
  #adjustments = new Map<string, Adjustment>();
  #known: Pick<AdjustmentState, 'head' | 'recent'> | undefined;
  /** Calls run one after the other, since each begins at the head that the one before has left. */
  readonly #turns = new Turns();

  constructor(store: AdjustmentStore, observer?: ReplicaObserver, decide = reconcile) {
    this.#store = store;
    this.#observer = observer;
    this.#decide = decide;
  }

  /** Undefined if this process does not know any history. */
  get head(): Head | undefined {
    return this.#known?.head;
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
   * Reads the store, and brings it forward if it lacks what this process knows.
   * @param instance see {@link AdjustmentStore.read}, also for `details`
   * @throws what the store throws
   */
  refresh(instance?: string, details?: string): Promise<void> {
    return this.#turns.run(() => this.#refresh(instance, details));
  }

  /**
   * Stores a change on top of the store's history.
   * @param create creates the entry that follows the head; may be called again. Undefined changes nothing
   * @throws what the store or `create` throws
   */
  append(create: (head: Head | undefined) => AdjustmentEntry | undefined): Promise<AdjustmentEntry | undefined> {
    return this.#turns.run(async () => {
      let entry: AdjustmentEntry | undefined;
      for (let round = 0; round < MAX_ROUNDS; round++) {
        // A process that has just written must read too: otherwise it is always faster than one that was refused.
        await this.#refresh();
        // A client that connects again may send a command twice. The second one is refused, because the first was not.
        if (entry !== undefined && this.#knows(entry)) return entry;
        entry = create(this.head);
        if (entry === undefined) return undefined;
        if (await this.#store.append(this.head, entry)) {
          this.#apply([entry]);
          return entry;
        }
      }
      throw new Error(`the adjustments could not be changed: ${MAX_ROUNDS} other changes came first. Try again`);
    });
  }

  #knows(head: Head): boolean {
    return this.#known?.recent.some((each) => isSameHead(each, head)) ?? false;
  }

  async #refresh(instance?: string, details?: string): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const reply = await this.#store.read(this.head, instance, details);
      this.#observer?.onReply(reply);
      const step = this.#decide(this.#known, reply);
      switch (step.kind) {
        case 'keep':
          return;
        case 'apply':
          return this.#apply(step.entries);
        case 'adopt':
          return this.#adopt(step.state, step.forked);
        case 'restore':
          if (await this.#store.restore(step.seen, this.state as AdjustmentState)) this.#observer?.onRestore();
      }
    }
  }

  #apply(entries: readonly AdjustmentEntry[]): void {
    for (const entry of entries) {
      applyEntry(this.#adjustments, entry);
      this.#known = { head: headOf(entry), recent: withEntry(this.#known?.recent ?? [], entry) };
    }
    const keys = entries.flatMap(({ limits }) => limits.map(({ target }) => targetKey(target)));
    this.#observer?.onChange(keys, entries);
  }

  #adopt({ head, recent, adjustments }: AdjustmentState, forked: boolean): void {
    const before = { recent: this.#known?.recent ?? [], keys: [...this.#adjustments.keys()] };
    this.#known = { head, recent };
    this.#adjustments = new Map(adjustments.map((each) => [targetKey(each.target), each]));
    this.#observer?.onChange(new Set([...before.keys, ...this.#adjustments.keys()]), []);
    if (!forked) return;
    const kept = new Set(recent.map(({ nonce }) => nonce));
    const oldest = recent[0]?.version ?? 0;
    this.#observer?.onFork(before.recent.filter(({ version, nonce }) => version >= oldest && !kept.has(nonce)));
  }
}

function headOf({ version, nonce }: Head): Head {
  return { version, nonce };
}
