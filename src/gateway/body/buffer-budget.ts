/** Most bytes that may be buffered at a time. */
export interface BufferLimits {
  /** By all requests together. */
  readonly maxBytes: number;
  /** By the requests of one application. */
  readonly maxApplicationBytes: number;
}

/** What one request buffers: a part of the budget. */
export interface BufferShare {
  /** Returns false, and counts nothing, if the budget has no room for so many more bytes. */
  add(bytes: number): boolean;
  /** Gives a part of the share back. */
  remove(bytes: number): void;
  /** Gives everything back. Nothing can be added afterwards. Later calls do nothing. */
  release(): void;
}

/**
 * The bytes that the process buffers for requests, in memory and in files. The sum is bounded, and so is the sum of
 * each application: otherwise one application could use up the memory that all need.
 */
export class BufferBudget {
  readonly #limits: BufferLimits;
  /** Only applications that buffer something now. */
  readonly #byApplication = new Map<string, number>();
  #bytes = 0;

  constructor(limits: BufferLimits) {
    this.#limits = limits;
  }

  /** Bytes that are buffered now. */
  get bytes(): number {
    return this.#bytes;
  }

  open(application: string): BufferShare {
    let own = 0;
    let isReleased = false;
    const remove = (bytes: number): void => {
      const given = Math.min(bytes, own);
      own -= given;
      this.#change(application, -given);
    };
    return {
      add: (bytes) => {
        if (isReleased || !this.#hasRoom(application, bytes)) return false;
        own += bytes;
        this.#change(application, bytes);
        return true;
      },
      remove,
      release: () => {
        isReleased = true;
        remove(own);
      },
    };
  }

  #hasRoom(application: string, bytes: number): boolean {
    const { maxBytes, maxApplicationBytes } = this.#limits;
    const used = this.#byApplication.get(application) ?? 0;
    return this.#bytes + bytes <= maxBytes && used + bytes <= maxApplicationBytes;
  }

  #change(application: string, bytes: number): void {
    if (bytes === 0) return;
    this.#bytes += bytes;
    const used = (this.#byApplication.get(application) ?? 0) + bytes;
    if (used === 0) this.#byApplication.delete(application);
    else this.#byApplication.set(application, used);
  }
}
