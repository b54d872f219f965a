import { checkOptions } from '../../base/options.ts';
import {
  type Adjustment,
  type AdjustmentEntry,
  type AdjustmentState,
  applyEntry,
  type Head,
  isSameHead,
  MAX_RECENT,
  targetKey,
} from '../../core/adjustment.ts';
import { type Clock, monotonicClock } from '../../core/clock.ts';
import { checkClock, readClock } from '../../stores/memory/options.ts';
import type { AdjustmentReply } from '../lineage.ts';
import type { AdjustmentInstance, AdjustmentStore } from '../ports.ts';

/** Options of {@link createMemoryAdjustments}. */
export interface MemoryAdjustmentsOptions {
  /**
   * Returns integer milliseconds since 1970, for the moments of changes.
   * @default a monotonic clock, which a step of the wall clock does not change
   */
  readonly clock?: Clock | undefined;
}

/** Entries of the history that are stored. */
const MAX_HISTORY = 10_000;
/** How long a process is listed after it was heard of. */
const LISTED_MS = 10_000;

/** The last report of a process. */
interface Heard {
  readonly head: Head | undefined;
  readonly heardAt: number;
}

/** Creates a store of adjustments in this process's memory, for one process and for tests. */
export function createMemoryAdjustments(options: MemoryAdjustmentsOptions = {}): AdjustmentStore {
  checkOptions(options, ['clock'], 'options');
  const { clock = monotonicClock } = options;
  checkClock(clock);
  return new MemoryAdjustments(clock);
}

/** Adjustments in memory. */
export class MemoryAdjustments implements AdjustmentStore {
  readonly durable = false;
  readonly #clock: Clock;
  #head: Head | undefined;
  #adjustments = new Map<string, Adjustment>();
  /** Oldest first. */
  #entries: AdjustmentEntry[] = [];
  readonly #instances = new Map<string, Heard>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  read(known: Head | undefined, instance?: string): AdjustmentReply {
    const now = readClock(this.#clock);
    if (instance !== undefined) {
      this.#forgetInstances(now);
      this.#instances.set(instance, { head: known, heardAt: now });
    }
    const head = this.#head;
    if (head === undefined) return { kind: 'none', now };
    if (isSameHead(head, known)) return { kind: 'same', now };
    const entries = known === undefined ? undefined : this.#entriesAfter(known);
    if (entries !== undefined) return { kind: 'changes', now, entries };
    return { kind: 'all', now, state: this.state as AdjustmentState };
  }

  /** Undefined without a history. */
  get state(): AdjustmentState | undefined {
    const recent = this.#entries.slice(-MAX_RECENT);
    return this.#head && { head: this.#head, adjustments: [...this.#adjustments.values()], recent };
  }

  append(seen: Head | undefined, entry: AdjustmentEntry): boolean {
    if (!isSameHead(this.#head, seen)) return false;
    applyEntry(this.#adjustments, entry);
    this.#entries.push(entry);
    // Twice as many at most, so that not every change moves all of them.
    if (this.#entries.length > 2 * MAX_HISTORY) this.#entries = this.#entries.slice(-MAX_HISTORY);
    this.#head = { version: entry.version, nonce: entry.nonce };
    return true;
  }

  restore(seen: Head | undefined, state: AdjustmentState): boolean {
    if (!isSameHead(this.#head, seen)) return false;
    this.replace(state);
    return true;
  }

  /** Replaces everything, whatever the head is. */
  replace(state: AdjustmentState | undefined): void {
    this.#adjustments = new Map(state?.adjustments.map((each) => [targetKey(each.target), each]));
    this.#entries = [...(state?.recent ?? [])];
    this.#head = state?.head;
  }

  history(before: number | undefined, limit: number): readonly AdjustmentEntry[] {
    const { length } = this.#entries;
    const newer = this.#entries.findIndex(({ version }) => version >= (before ?? Number.POSITIVE_INFINITY));
    const end = newer === -1 ? length : newer;
    return this.#entries.slice(Math.max(0, end - limit), end).reverse();
  }

  instances(): readonly AdjustmentInstance[] {
    const now = readClock(this.#clock);
    this.#forgetInstances(now);
    return [...this.#instances].map(([name, { head, heardAt }]) => ({ name, head, ageMs: now - heardAt }));
  }

  #entriesAfter(known: Head): readonly AdjustmentEntry[] | undefined {
    // Versions rise by one, so the place of an entry follows from its version.
    const at = known.version - (this.#entries[0]?.version ?? 0);
    const isKnown = isSameHead(this.#entries[at], known);
    return isKnown && this.#entries.length - at - 1 <= MAX_RECENT ? this.#entries.slice(at + 1) : undefined;
  }

  #forgetInstances(now: number): void {
    for (const [name, { heardAt }] of this.#instances) if (now - heardAt > LISTED_MS) this.#instances.delete(name);
  }
}
