import type { Emitter } from '../base/emitter.ts';
import { isHeadgateError } from '../base/errors.ts';
import { Tally } from '../base/tally.ts';
import type { ClaimId } from '../core/ports.ts';
import type { Timers } from '../core/timers.ts';
import type { ClaimCommandName, IdempotencyEvent } from './events.ts';

/** A command that is sent until the store acknowledges it. */
export interface RetryTask {
  readonly id: ClaimId;
  readonly command: ClaimCommandName;
  /** From this time on the command is without effect, and is dropped. */
  readonly expiresAt: number;
  /** Length of the value that waits with the command, in UTF-16 units. */
  readonly valueLength: number;
  /** Length of the note that waits with the command, which is never sent without it. */
  readonly noteLength: number;
  /** Rejects if the store did not acknowledge the command. */
  send(): Promise<void>;
}

/** The first try is made at once. The pause doubles after each failure, up to the maximum. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 5_000;
/** A store that recovers does not receive all commands at once. */
const MAX_CONCURRENT = 32;
/** Limit for all waiting values together, in UTF-16 units. Above it, outcomes are stored without their values (I7). */
const MAX_TOTAL_LENGTH = 64 * 1_048_576;
/** The same limit for the values of one scope, so that one application cannot use all of it. One value always fits. */
const MAX_SCOPE_LENGTH = 8 * 1_048_576;
/** Longer values of one scope are sent one by one, so that they do not crowd out those of running requests. */
const LARGE_LENGTH = 8_192;

/** A command, and how often it failed. */
interface Try {
  readonly task: RetryTask;
  readonly failures: number;
}

/** Sends each command again and again, until it is acknowledged or its record expired. */
export class RetryQueue {
  /** Each task with the function that cancels its pause. */
  readonly #tasks = new Map<RetryTask, (() => void) | undefined>();
  readonly #ready: Try[] = [];
  /** Scopes of which a large value is ready or on its way, with the large values that wait for it. */
  readonly #largeValues = new Map<string, Try[]>();
  /** Length of the waiting values per scope, in UTF-16 units. */
  readonly #lengths = new Tally();
  readonly #emptyListeners: (() => void)[] = [];
  #running = 0;
  #stopped = false;

  constructor(
    private readonly timers: Timers,
    private readonly events: Emitter<IdempotencyEvent>,
  ) {}

  /** How many commands are not acknowledged yet. */
  get size(): number {
    return this.#tasks.size;
  }

  /** Whether so many UTF-16 units may wait in memory until the store recovers. */
  hasRoomFor(scope: string, length: number): boolean {
    if (length === 0) return true;
    const scopeLength = this.#lengths.of(scope);
    return (
      this.#lengths.total + length <= MAX_TOTAL_LENGTH &&
      (scopeLength === 0 || scopeLength + length <= MAX_SCOPE_LENGTH)
    );
  }

  add(task: RetryTask): void {
    if (this.#stopped) return;
    const { id, command, noteLength } = task;
    if (!this.hasRoomFor(id.scope, noteLength)) {
      // Without its note, the step would be made without its rows. So the claim becomes an orphan.
      this.events.emit({ type: 'given_up', ...id, command });
      return;
    }
    this.#tasks.set(task, undefined);
    this.#lengths.add(id.scope, lengthOf(task));
    this.#enqueue({ task, failures: 0 });
  }

  /** Resolves when no command is left. */
  whenEmpty(): Promise<void> {
    if (this.#tasks.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#emptyListeners.push(resolve));
  }

  /** Drops all commands. No command is sent after this. */
  stop(): void {
    this.#stopped = true;
    for (const [task, cancelPause] of this.#tasks) {
      cancelPause?.();
      this.#remove(task);
    }
    this.#ready.length = 0;
    this.#largeValues.clear();
  }

  #enqueue(next: Try): void {
    const { id } = next.task;
    if (lengthOf(next.task) > LARGE_LENGTH) {
      const waiting = this.#largeValues.get(id.scope);
      if (waiting !== undefined) {
        waiting.push(next);
        return;
      }
      this.#largeValues.set(id.scope, []);
    }
    this.#ready.push(next);
    this.#sendNext();
  }

  /** A large value was sent: the next one of its scope is ready. */
  #readyNextLarge(scope: string): void {
    const next = this.#largeValues.get(scope)?.shift();
    if (next === undefined) this.#largeValues.delete(scope);
    else this.#ready.push(next);
  }

  #sendNext(): void {
    while (this.#running < MAX_CONCURRENT) {
      const next = this.#ready.shift();
      if (next === undefined) return;
      this.#running++;
      void this.#send(next.task, next.failures);
    }
  }

  async #send(task: RetryTask, failures: number): Promise<void> {
    try {
      await task.send();
      this.#remove(task);
    } catch (error) {
      // The store acknowledged the command: another outcome is stored, which only cannot be read now.
      if (isHeadgateError(error, 'result_unavailable')) this.#remove(task);
      else this.#retryLater(task, failures + 1, error);
    } finally {
      this.#running--;
      if (lengthOf(task) > LARGE_LENGTH) this.#readyNextLarge(task.id.scope);
      this.#sendNext();
    }
  }

  #retryLater(task: RetryTask, failures: number, error: unknown): void {
    if (this.#stopped) return;
    const { id, command, expiresAt } = task;
    if (this.timers.now() >= expiresAt) {
      this.#remove(task);
      this.events.emit({ type: 'given_up', ...id, command });
      return;
    }
    this.events.emit({ type: 'retrying', ...id, command, tries: failures, error });
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MAX_PAUSE_MS);
    this.#tasks.set(
      task,
      this.timers.after(pauseMs, () => this.#enqueue({ task, failures }), true),
    );
  }

  #remove(task: RetryTask): void {
    if (!this.#tasks.delete(task)) return;
    this.#lengths.add(task.id.scope, -lengthOf(task));
    if (this.#tasks.size > 0) return;
    for (const resolve of this.#emptyListeners.splice(0)) resolve();
  }
}

function lengthOf({ valueLength, noteLength }: RetryTask): number {
  return valueLength + noteLength;
}
