import type { ClaimId } from '../core/ports.ts';
import type { ClaimCommandName, Events } from './events.ts';
import type { Timers } from './timers.ts';

/** A command that has to be acknowledged, however long that takes. */
export interface Task {
  readonly id: ClaimId;
  readonly command: ClaimCommandName;
  /** Past it the command does not matter any more. */
  readonly until: number;
  /** Characters that wait with it. */
  readonly size: number;
  /** Rejects where it was not acknowledged. */
  send(): Promise<void>;
}

/** Pause before the second try, doubled up to the longest. The first is made at once. */
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5_000;
/** A store that comes back is not met by everything at once. */
const AT_ONCE = 32;
/** Of all that waits, in characters: past it outcomes are kept without their values (I7). */
const MAX_SIZE = 64 * 1_048_576;

/** Sends commands again and again until each is acknowledged, or its record is over. */
export class Background {
  readonly #timers: Timers;
  readonly #events: Events;
  /** Each with what cancels its pause. */
  readonly #tasks = new Map<Task, (() => void) | undefined>();
  readonly #due: { readonly task: Task; readonly tries: number }[] = [];
  readonly #whenEmpty: (() => void)[] = [];
  #running = 0;
  #size = 0;
  #stopped = false;

  constructor(timers: Timers, events: Events) {
    this.#timers = timers;
    this.#events = events;
  }

  /** Commands not acknowledged yet. */
  get pending(): number {
    return this.#tasks.size;
  }

  /** Whether a value may wait here, for as long as the store is away. */
  roomFor(value: string | undefined): boolean {
    return value === undefined || this.#size + value.length <= MAX_SIZE;
  }

  add(task: Task): void {
    if (this.#stopped) return;
    this.#tasks.set(task, undefined);
    this.#size += task.size;
    this.#queue(task, 0);
  }

  /** Resolves once nothing is left. */
  empty(): Promise<void> {
    if (this.#tasks.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenEmpty.push(resolve));
  }

  /** Nothing is sent any more, and nothing left to wait for. */
  stop(): void {
    this.#stopped = true;
    for (const [task, cancel] of this.#tasks) {
      cancel?.();
      this.#done(task);
    }
    this.#due.length = 0;
  }

  #queue(task: Task, tries: number): void {
    this.#due.push({ task, tries });
    this.#next();
  }

  #next(): void {
    while (this.#running < AT_ONCE) {
      const next = this.#due.shift();
      if (next === undefined) return;
      this.#running++;
      void this.#try(next.task, next.tries);
    }
  }

  async #try(task: Task, tries: number): Promise<void> {
    try {
      await task.send();
      this.#done(task);
    } catch (error) {
      this.#failed(task, tries + 1, error);
    } finally {
      this.#running--;
      this.#next();
    }
  }

  #failed(task: Task, tries: number, error: unknown): void {
    if (this.#stopped) return;
    const { id, command, until } = task;
    if (this.#timers.now() >= until) {
      this.#done(task);
      if (this.#events.heard) this.#events.emit({ ...id, type: 'given_up', command });
      return;
    }
    if (this.#events.heard) this.#events.emit({ ...id, type: 'retrying', command, tries, error });
    const pauseMs = Math.min(PAUSE_MS * 2 ** (tries - 1), LONGEST_PAUSE_MS);
    this.#tasks.set(
      task,
      this.#timers.after(pauseMs, () => this.#queue(task, tries), true),
    );
  }

  #done(task: Task): void {
    if (!this.#tasks.delete(task)) return;
    this.#size -= task.size;
    if (this.#tasks.size > 0) return;
    for (const resolve of this.#whenEmpty.splice(0)) resolve();
  }
}
