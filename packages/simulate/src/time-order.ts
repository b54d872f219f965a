/** The sort key of an entry of the heap: the time, and among equal times a number. */
export interface Timed {
  readonly at: number;
  readonly order: number;
}

/**
 * Sorts events that arrive almost in the order of their times: an event waits until an event arrives that is `sortMs`
 * later. An event that arrives later than that is let through at once.
 */
export class TimeOrder<Event extends Timed> {
  readonly #heap: Event[] = [];
  readonly #sortMs: number;
  #latest = Number.NEGATIVE_INFINITY;
  #released = Number.NEGATIVE_INFINITY;

  constructor(sortMs: number) {
    this.#sortMs = sortMs;
  }

  /** Returns whether it came in time. */
  add(event: Event): boolean {
    if (event.at > this.#latest) this.#latest = event.at;
    const isInTime = event.at >= this.#released;
    const heap = this.#heap;
    let i = heap.length;
    heap.push(event);
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[i] = heap[parent] as Event;
      i = parent;
    }
    heap[i] = event;
    return isInTime;
  }

  /** The next event that no other can precede any more; with `isEnd`, the next one. */
  take(isEnd = false): Event | undefined {
    const heap = this.#heap;
    const [first] = heap;
    if (first === undefined || (!isEnd && first.at > this.#latest - this.#sortMs)) return undefined;
    const last = heap.pop() as Event;
    if (heap.length > 0) this.#sink(last);
    if (first.at > this.#released) this.#released = first.at;
    return first;
  }

  #sink(event: Event): void {
    const heap = this.#heap;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (!isBefore(heap[child] as Event, event)) break;
      heap[i] = heap[child] as Event;
      i = child;
    }
    heap[i] = event;
  }
}

function isBefore(a: Timed, b: Timed): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
