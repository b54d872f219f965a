import { Tally } from '../base/tally.ts';

/** Most bytes that may be buffered at a time. */
export interface BufferLimits {
  /** By all requests together. */
  readonly maxBytes: number;
  /** By the requests of one application. */
  readonly maxApplicationBytes: number;
}

/** One request's part of the budget. */
export interface BufferShare {
  /** Returns false, and counts nothing, if so many more bytes exceed the budget. */
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
  readonly #bytes = new Tally();

  constructor(limits: BufferLimits) {
    this.#limits = limits;
  }

  /** Bytes that are buffered now. */
  get bytes(): number {
    return this.#bytes.total;
  }

  open(application: string): BufferShare {
    let own = 0;
    let isReleased = false;
    const remove = (bytes: number): void => {
      const given = Math.min(bytes, own);
      own -= given;
      this.#bytes.add(application, -given);
    };
    return {
      add: (bytes) => {
        if (isReleased || !this.#hasRoom(application, bytes)) return false;
        own += bytes;
        this.#bytes.add(application, bytes);
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
    return this.bytes + bytes <= maxBytes && this.#bytes.of(application) + bytes <= maxApplicationBytes;
  }
}
