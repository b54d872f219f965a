const BYTES = 2_048;
/** Longest text of a set: Base64 in which nothing repeats. */
const MAX_TEXT = 2_731;
/** Base64 of slots that are all in the set, or all not. */
const RUN = /([A_])\1{4,}/g;
const WRITTEN_RUN = /([A_])\*(\d{1,4})\./g;

/** A set of the 16,384 hash slots of a cluster. Never modified after it was made. */
export class SlotSet {
  readonly #bytes: Uint8Array;

  /** @param bytes a bit per slot */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** @param ranges first and last slot of each range */
  static of(ranges: readonly (readonly [first: number, last: number])[]): SlotSet {
    const bytes = new Uint8Array(BYTES);
    for (const [first, last] of ranges) {
      for (let slot = first; slot <= last; slot++) (bytes[slot >> 3] as number) |= 1 << (slot & 7);
    }
    return new SlotSet(bytes);
  }

  /** Reads what {@link SlotSet.toString} made; undefined for any other text. */
  static parse(text: string): SlotSet | undefined {
    if (text.length > MAX_TEXT) return undefined;
    const base64 = text.replace(WRITTEN_RUN, (_, char: string, length: string) => char.repeat(Number(length)));
    const bytes = new Uint8Array(Buffer.from(base64, 'base64url'));
    const set = new SlotSet(bytes);
    return bytes.length === BYTES && set.toString() === text ? set : undefined;
  }

  /** A short text if the slots are in few ranges, and never one of more than 2,731 characters. */
  toString(): string {
    const base64 = Buffer.from(this.#bytes).toString('base64url');
    return base64.replace(RUN, (run, char: string) => `${char}*${run.length}.`);
  }

  get isEmpty(): boolean {
    return this.#bytes.every((byte) => byte === 0);
  }

  and(others: SlotSet): SlotSet {
    return new SlotSet(this.#bytes.map((byte, i) => byte & (others.#bytes[i] as number)));
  }

  or(others: SlotSet): SlotSet {
    return new SlotSet(this.#bytes.map((byte, i) => byte | (others.#bytes[i] as number)));
  }

  without(others: SlotSet): SlotSet {
    return new SlotSet(this.#bytes.map((byte, i) => byte & ~(others.#bytes[i] as number)));
  }
}

export const NO_SLOTS: SlotSet = /* @__PURE__ */ SlotSet.of([]);
export const ALL_SLOTS: SlotSet = /* @__PURE__ */ SlotSet.of([[0, 8 * BYTES - 1]]);
