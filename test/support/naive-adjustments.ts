import {
  type Adjustment,
  type AdjustmentEntry,
  type AdjustmentState,
  applyEntry,
  type Head,
  isSameHead,
  targetKey,
} from '../../src/core/adjustment.ts';
import type { AdjustmentReply } from '../../src/shared-limits/lineage.ts';
import type { AdjustmentStore } from '../../src/shared-limits/ports.ts';

/** A store whose every state is kept, so that it can lose its last changes. It also writes down what follows what. */
export class NaiveAdjustments {
  state: AdjustmentState | undefined;
  /** Every state that the store has had, that of an empty one first. */
  readonly past: (AdjustmentState | undefined)[] = [undefined];
  /** Whether a process has taken away a change that the store had. */
  hasLostByRestore = false;
  /** Every change that was ever accepted, and the change that it followed, by nonce. */
  readonly #accepted = new Map<string, { readonly entry: AdjustmentEntry; readonly parent: Head | undefined }>();

  /** @param compares whether `restore` compares the head before it replaces it */
  constructor(private readonly compares = true) {}

  read(known: Head | undefined): AdjustmentReply {
    const { state } = this;
    if (state === undefined) return { kind: 'none', now: 0 };
    if (isSameHead(state.head, known)) return { kind: 'same', now: 0 };
    const at = state.recent.findIndex((entry) => isSameHead(entry, known));
    return at === -1
      ? { kind: 'all', now: 0, state }
      : { kind: 'changes', now: 0, entries: state.recent.slice(at + 1) };
  }

  append(seen: Head | undefined, entry: AdjustmentEntry): boolean {
    if (!isSameHead(this.state?.head, seen)) return false;
    this.#accepted.set(entry.nonce, { entry, parent: seen });
    const adjustments = new Map(this.state?.adjustments.map((each) => [targetKey(each.target), each]));
    applyEntry(adjustments, entry);
    const recent = [...(this.state?.recent ?? []), entry];
    this.become({ head: headOf(entry), adjustments: [...adjustments.values()], recent });
    return true;
  }

  restore(seen: Head | undefined, state: AdjustmentState): boolean {
    if (this.compares && !isSameHead(this.state?.head, seen)) return false;
    this.hasLostByRestore ||= !this.follows(state.head, this.state?.head);
    this.become(state);
    return true;
  }

  become(state: AdjustmentState | undefined): void {
    this.state = state;
    this.past.push(state);
  }

  /** Whether `head` comes after `other`, or is the same. Every history begins with undefined. */
  follows(head: Head | undefined, other: Head | undefined): boolean {
    if (other === undefined || isSameHead(head, other)) return true;
    return head !== undefined && this.follows(this.#accepted.get(head.nonce)?.parent, other);
  }

  /** The adjustments that all changes up to this one make. */
  adjustmentsAt(head: Head | undefined): Map<string, Adjustment> {
    if (head === undefined) return new Map();
    const { entry, parent } = this.#accepted.get(head.nonce) as { entry: AdjustmentEntry; parent: Head | undefined };
    const adjustments = this.adjustmentsAt(parent);
    applyEntry(adjustments, entry);
    return adjustments;
  }
}

/** What happens to the next change that a connection sends. `late`: the store executes it after the caller has given it up. */
export type CallFault = 'unsent' | 'unanswered' | 'late';

/** The connection of one process to the store. */
export class FaultyConnection implements AdjustmentStore {
  readonly durable = true;
  isCut = false;
  next: CallFault | undefined;

  constructor(
    private readonly store: NaiveAdjustments,
    private readonly late: (() => void)[],
  ) {}

  async read(known: Head | undefined): Promise<AdjustmentReply> {
    if (this.isCut) throw new Error('the store is out of reach');
    return this.store.read(known);
  }

  append(seen: Head | undefined, entry: AdjustmentEntry): Promise<boolean> {
    return this.#change(() => this.store.append(seen, entry));
  }

  restore(seen: Head | undefined, state: AdjustmentState): Promise<boolean> {
    return this.#change(() => this.store.restore(seen, state));
  }

  history(): readonly AdjustmentEntry[] {
    return [];
  }

  instances(): readonly never[] {
    return [];
  }

  async #change(execute: () => boolean): Promise<boolean> {
    const fault = this.isCut ? 'unsent' : this.next;
    this.next = undefined;
    if (fault === 'late') this.late.push(execute);
    const stored = (fault === undefined || fault === 'unanswered') && execute();
    if (fault !== undefined) throw new Error(`the call was ${fault}`);
    return stored;
  }
}

function headOf({ version, nonce }: Head): Head {
  return { version, nonce };
}
