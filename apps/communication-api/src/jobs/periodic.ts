/** When periodic work is done. */
export interface PeriodicTimes {
  /** From the start to the first time, in milliseconds. */
  readonly firstMs: number;
  /** From the end of one time to the next one, in milliseconds. */
  readonly everyMs: number;
}

/** Work that a process does again and again until it closes. Two times never overlap. */
export class Periodic {
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  readonly #closing = new AbortController();

  /** @param work handles its own errors: it never rejects */
  constructor(
    private readonly times: PeriodicTimes,
    private readonly work: () => Promise<void>,
  ) {}

  /** Aborted when the process closes: the work ends early. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  start(): void {
    this.#runIn(this.times.firstMs);
  }

  /** Waits until the running work ends. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    await this.#running;
  }

  #runIn(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#running = this.work().then(() => {
        if (!this.signal.aborted) this.#runIn(this.times.everyMs);
      });
    }, ms);
    this.#timer.unref();
  }
}
