import { monotonicClock } from '../../core/clock.ts';

/** A part of a call that waits to be sent. */
export interface QueuedItem {
  /** Names of the rows that it touches. */
  readonly keys: readonly string[];
  /** When it arrived, on this process's clock. */
  readonly addedAt: number;
}

/** Options of {@link CallQueue}. */
export interface CallQueueOptions<Item extends QueuedItem> {
  /** Most calls that are under way at the same time, each on a connection of its own. */
  readonly maxCalls: number;
  /** Whether items of one call may touch the same rows. Otherwise the later one waits for the next call. */
  readonly sharesRows?: boolean | undefined;
  /** Longest wait for the turn of an item, in milliseconds. */
  readonly maxWaitMs: number;
  /** Sends items in one call. Must not reject. */
  readonly send: (items: readonly Item[]) => Promise<void>;
  /** Called with items whose turn did not come in time. */
  readonly giveUp: (items: readonly Item[]) => void;
}

/** Most items per call: its locks are free again only when all of them are done. */
const MAX_ITEMS = 64;
/** Fewer items are not worth a separate call. */
const MIN_ITEMS = 8;
/** Items that are looked at per call. Those that others must come before are left out. */
const MAX_LOOKED = 1_024;

/**
 * Collects items while calls are under way, and sends them together. A counter is in one call at a time: on the server
 * the second call would wait for the first, and occupy a connection meanwhile. Items that touch the same counters
 * keep their order.
 */
export class CallQueue<Item extends QueuedItem> {
  readonly #options: CallQueueOptions<Item>;
  readonly #waiting = new Set<Item>();
  /** The last waiting item of each key. */
  readonly #last = new Map<string, Item>();
  /** Keys of the items that are under way. */
  readonly #busy = new Set<string>();
  #calls = 0;
  #isScheduled = false;

  constructor(options: CallQueueOptions<Item>) {
    this.#options = options;
  }

  /** The waiting item behind which a new one with these keys would come. Undefined if it has other keys, or is none. */
  last(keys: readonly string[]): Item | undefined {
    const last = this.#last.get(keys[0] as string);
    return last?.keys.length === keys.length && keys.every((key) => this.#last.get(key) === last) ? last : undefined;
  }

  add(item: Item): void {
    this.#waiting.add(item);
    for (const key of item.keys) this.#last.set(key, item);
    this.#schedule();
  }

  /** Sends at the end of the turn, so that the items of a turn are together. */
  #schedule(): void {
    if (this.#isScheduled || this.#calls >= this.#options.maxCalls) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendAll();
    });
  }

  #sendAll(): void {
    const oldest = monotonicClock.now() - this.#options.maxWaitMs;
    const late: Item[] = [];
    for (const item of this.#waiting) {
      if (item.addedAt >= oldest) break;
      late.push(item);
    }
    for (const item of late) this.#remove(item);
    if (late.length > 0) this.#options.giveUp(late);
    while (this.#calls < this.#options.maxCalls && this.#waiting.size > 0) {
      const items = this.#take();
      if (items.length === 0) return;
      void this.#send(items);
    }
  }

  async #send(items: readonly Item[]): Promise<void> {
    this.#calls++;
    for (const { keys } of items) for (const key of keys) this.#busy.add(key);
    await this.#options.send(items);
    for (const { keys } of items) for (const key of keys) this.#busy.delete(key);
    this.#calls--;
    if (this.#waiting.size > 0) this.#schedule();
  }

  /** The items of the next call: an equal share of those that wait, and none whose counters are in use. */
  #take(): Item[] {
    const share = Math.ceil(this.#waiting.size / (this.#options.maxCalls - this.#calls));
    const most = Math.min(MAX_ITEMS, Math.max(MIN_ITEMS, share));
    const taken: Item[] = [];
    const used = new Set<string>();
    let looked = 0;
    for (const item of this.#waiting) {
      if (taken.length >= most || looked++ >= MAX_LOOKED) break;
      if (!item.keys.some((key) => used.has(key) || this.#busy.has(key))) taken.push(item);
      if (this.#options.sharesRows !== true) for (const key of item.keys) used.add(key);
    }
    for (const item of taken) this.#remove(item);
    return taken;
  }

  #remove(item: Item): void {
    this.#waiting.delete(item);
    for (const key of item.keys) if (this.#last.get(key) === item) this.#last.delete(key);
  }
}
