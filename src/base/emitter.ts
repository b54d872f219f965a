import type { Logger } from './logger.ts';
import { isPromise } from './maybe-promise.ts';

/** Passes events to at most one listener. A listener cannot break a request: its errors are logged. */
export class Emitter<Event> {
  constructor(
    protected readonly listener: ((event: Event) => void) | undefined,
    protected readonly log: Logger,
    private readonly option = 'onEvent',
  ) {}

  /** Whether events are received. If not, the caller need not create them. */
  get hasListener(): boolean {
    return this.listener !== undefined;
  }

  emit(event: Event): void {
    try {
      const result: unknown = this.listener?.(event);
      // An asynchronous listener rejects. An unhandled rejection would end the process.
      if (isPromise(result)) result.then(undefined, (error: unknown) => this.#report(error));
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error: unknown): void {
    this.log(`headgate: the listener ${this.option} failed`, error);
  }
}
