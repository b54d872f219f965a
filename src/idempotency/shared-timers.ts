import type { Clock } from '../core/clock.ts';

interface Entry {
  readonly list: List;
  readonly dueAt: number;
  /** Undefined once it was called or cancelled. */
  call: (() => void) | undefined;
  before: Entry | undefined;
  after: Entry | undefined;
}

/** Calls after one and the same time, so that the first to come is the first that is due. */
interface List {
  readonly ms: number;
  first: Entry | undefined;
  last: Entry | undefined;
}

/**
 * One timer of the platform's for all that is to come after the same time, where most of it is cancelled long before: a lease is renewed for one
 * claim in thousands, and a timer for each would cost more than the claim. A timer that has nothing to call any more ends with its time.
 */
export class SharedTimers {
  readonly #clock: Clock;
  readonly #wait: (call: () => void, ms: number) => void;
  readonly #lists = new Map<number, List>();

  constructor(clock: Clock, wait: (call: () => void, ms: number) => void) {
    this.#clock = clock;
    this.#wait = wait;
  }

  after(ms: number, call: () => void): () => void {
    const entry: Entry = {
      list: this.#list(ms),
      dueAt: this.#clock.now() + ms,
      call,
      before: undefined,
      after: undefined,
    };
    append(entry);
    return () => remove(entry);
  }

  #list(ms: number): List {
    const known = this.#lists.get(ms);
    if (known !== undefined) return known;
    const list: List = { ms, first: undefined, last: undefined };
    this.#lists.set(ms, list);
    this.#wait(() => this.#due(list), ms);
    return list;
  }

  #due(list: List): void {
    const now = this.#clock.now();
    for (let next = list.first; next !== undefined && next.dueAt <= now; next = list.first) {
      const { call } = next;
      remove(next);
      call?.();
    }
    if (list.first === undefined) this.#lists.delete(list.ms);
    else this.#wait(() => this.#due(list), Math.max(1, list.first.dueAt - now));
  }
}

function append(entry: Entry): void {
  const { list } = entry;
  entry.before = list.last;
  if (list.last === undefined) list.first = entry;
  else list.last.after = entry;
  list.last = entry;
}

function remove(entry: Entry): void {
  if (entry.call === undefined) return;
  entry.call = undefined;
  const { list, before, after } = entry;
  if (before === undefined) list.first = after;
  else before.after = after;
  if (after === undefined) list.last = before;
  else after.before = before;
}
