/** Passes events to at most one listener. */
export class Emitter<Event> {
  readonly #listener: ((event: Event) => void) | undefined;

  constructor(listener: ((event: Event) => void) | undefined) {
    this.#listener = listener;
  }

  /** Whether an event has a receiver; without one, callers need not create the event. */
  get hasListener(): boolean {
    return this.#listener !== undefined;
  }

  emit(event: Event): void {
    try {
      this.#listener?.(event);
    } catch (error) {
      // A listener's error is a fault of the program, not of the request: it surfaces where uncaught errors do.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
