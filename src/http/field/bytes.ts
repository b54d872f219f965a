import { decodeUtf8 } from '../parse/utf8.ts';

/** Bytes that are collected up to a bound. */
export class Bytes {
  #bytes = new Uint8Array(64);
  #length = 0;

  constructor(private readonly max: number) {}

  get first(): number | undefined {
    return this.#length === 0 ? undefined : this.#bytes[0];
  }

  /** Whether there was room. */
  add(bytes: Uint8Array, start = 0, end = bytes.length): boolean {
    const length = this.#length + end - start;
    if (length > this.max) return false;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    this.#bytes.set(bytes.subarray(start, end), this.#length);
    this.#length = length;
    return true;
  }

  /** What was collected; valid until more is. Empty afterwards. */
  take(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return bytes;
  }

  /** What was collected, as UTF-8; undefined where it is none. Empty afterwards. */
  text(): string | undefined {
    return this.#length === 0 ? '' : decodeUtf8(this.take());
  }

  /** As {@link text}, and it stays. */
  peek(): string | undefined {
    return decodeUtf8(this.#bytes.subarray(0, this.#length));
  }
}
