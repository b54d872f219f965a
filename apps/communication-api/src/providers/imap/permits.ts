/** A number of permits. First come, first served. */
export class Permits {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(private readonly total: number) {
    this.#free = total;
  }

  get areAllFree(): boolean {
    return this.#free === this.total;
  }

  get areSomeFree(): boolean {
    return this.#free > 0;
  }

  get areSomeAwaited(): boolean {
    return this.#waiting.size > 0;
  }

  /** Takes a permit, as soon as there is one. Rejects if the signal is aborted before. */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const take = (): void => {
        signal.removeEventListener('abort', abort);
        resolve();
      };
      const abort = (): void => {
        this.#waiting.delete(take);
        reject(signal.reason);
      };
      signal.addEventListener('abort', abort, { once: true });
      this.#waiting.add(take);
    });
  }

  give(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#free++;
    else {
      this.#waiting.delete(next);
      next();
    }
  }
}
