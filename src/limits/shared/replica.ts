import {
  type Adjustment,
  type AdjustmentEntry,
  type AdjustmentState,
  applyEntry,
  type Head,
  targetKey,
  withEntry,
} from '../../core/adjustment.ts';
import { reconcile } from '../../core/lineage.ts';
import type { AdjustmentStore } from '../../core/ports.ts';

/** Rounds of reading and restoring, or of appending, before a call gives up: other processes change the store. */
const MAX_ROUNDS = 50;

/** What one process knows of a store's adjustments. It follows the store, and gives back what the store has lost. */
export class Replica {
  readonly #store: AdjustmentStore;
  readonly #decide: typeof reconcile;
  #adjustments = new Map<string, Adjustment>();
  #known: Pick<AdjustmentState, 'head' | 'recent'> | undefined;
  /** Calls run one after the other, since each begins at the head that the one before has left. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(store: AdjustmentStore, decide = reconcile) {
    this.#store = store;
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
   * @throws what the store throws
   */
  refresh(): Promise<void> {
    return this.#inTurn(() => this.#refresh());
  }

  /**
   * Stores a change on top of the store's history.
   * @param create creates the entry that follows the head; may be called again. Undefined changes nothing
   * @throws what the store or `create` throws
   */
  append(create: (head: Head | undefined) => AdjustmentEntry | undefined): Promise<AdjustmentEntry | undefined> {
    return this.#inTurn(async () => {
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const entry = create(this.head);
        if (entry === undefined || (await this.#store.append(this.head, entry))) {
          if (entry !== undefined) this.#apply([entry]);
          return entry;
        }
        await this.#refresh();
      }
      throw new Error('too many other changes');
    });
  }

  async #refresh(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const step = this.#decide(this.#known, await this.#store.read(this.head));
      switch (step.kind) {
        case 'keep':
          return;
        case 'apply':
          return this.#apply(step.entries);
        case 'adopt':
          return this.#adopt(step.state);
        case 'restore':
          await this.#store.restore(step.seen, this.state as AdjustmentState);
      }
    }
  }

  #apply(entries: readonly AdjustmentEntry[]): void {
    for (const entry of entries) {
      applyEntry(this.#adjustments, entry);
      this.#known = { head: headOf(entry), recent: withEntry(this.#known?.recent ?? [], entry) };
    }
  }

  #adopt({ head, recent, adjustments }: AdjustmentState): void {
    this.#known = { head, recent };
    this.#adjustments = new Map(adjustments.map((each) => [targetKey(each.target), each]));
  }

  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#last.then(run);
    this.#last = result.catch(() => undefined);
    return result;
  }
}

function headOf({ version, nonce }: Head): Head {
  return { version, nonce };
}
