/** Passes events to at most one listener. A listener cannot break a request. */
export class Emitter<Event> {
  constructor(protected readonly listener: ((event: Event) => void) | undefined) {}

  /** Whether events are received. If not, the caller need not create them. */
  get hasListener(): boolean {
    return this.listener !== undefined;
  }

  emit(event: Event): void {
    try {
      this.listener?.(event);
    } catch (error) {
      // A listener's error is a fault of the program, not of the request: it surfaces where uncaught errors do.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
