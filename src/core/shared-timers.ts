import type { Clock } from './clock.ts';

interface Entry {
  readonly queue: Queue;
  readonly dueAt: number;
  /** Undefined after it was called or cancelled. */
  call: (() => void) | undefined;
  previous: Entry | undefined;
  next: Entry | undefined;
}

/** All calls with the same delay. The first call in the queue is therefore the first one due. */
interface Queue {
  readonly delayMs: number;
  first: Entry | undefined;
  last: Entry | undefined;
}

/**
 * One platform timer per delay. Almost all calls are cancelled long before they are due: a lease is renewed for one
 * claim in thousands, and a timer per claim would cost more than the claim. A timer with nothing left to call is
 * not set again.
 */
export class SharedTimers {
  readonly #queues = new Map<number, Queue>();

  constructor(
    private readonly clock: Clock,
    private readonly setTimer: (call: () => void, ms: number) => void,
  ) {}

  /** Calls `call` once, `ms` milliseconds from now or later. Returns a function that cancels the call. */
  after(ms: number, call: () => void): () => void {
    const queue = this.#queueFor(ms);
    const entry: Entry = { queue, dueAt: this.clock.now() + ms, call, previous: undefined, next: undefined };
    append(entry);
    return () => remove(entry);
  }

  #queueFor(delayMs: number): Queue {
    const existing = this.#queues.get(delayMs);
    if (existing !== undefined) return existing;
    const queue: Queue = { delayMs, first: undefined, last: undefined };
    this.#queues.set(delayMs, queue);
    this.setTimer(() => this.#callDue(queue), delayMs);
    return queue;
  }

  #callDue(queue: Queue): void {
    const now = this.clock.now();
    for (let due = queue.first; due !== undefined && due.dueAt <= now; due = queue.first) {
      const { call } = due;
      remove(due);
      call?.();
    }
    if (queue.first === undefined) this.#queues.delete(queue.delayMs);
    else this.setTimer(() => this.#callDue(queue), Math.max(1, queue.first.dueAt - now));
  }
}

function append(entry: Entry): void {
  const { queue } = entry;
  entry.previous = queue.last;
  if (queue.last === undefined) queue.first = entry;
  else queue.last.next = entry;
  queue.last = entry;
}

function remove(entry: Entry): void {
  if (entry.call === undefined) return;
  entry.call = undefined;
  const { queue, previous, next } = entry;
  if (previous === undefined) queue.first = next;
  else previous.next = next;
  if (next === undefined) queue.last = previous;
  else next.previous = previous;
}
