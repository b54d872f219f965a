import { decodeUtf8 } from '../parse/utf8.ts';

/** Up to this length, in bytes, a loop is faster than a view. */
const SHORT = 32;

/** Collects bytes up to a maximum length. */
export class BoundedBuffer {
  #bytes = new Uint8Array(64);
  #length = 0;

  constructor(private readonly maxLength: number) {}

  get first(): number | undefined {
    return this.#length === 0 ? undefined : this.#bytes[0];
  }

  /** Returns false, and adds nothing, if there is no room. */
  addByte(byte: number): boolean {
    if (!this.#reserve(1)) return false;
    this.#bytes[this.#length++] = byte;
    return true;
  }

  /** Returns false, and adds nothing, if there is not enough room. */
  add(bytes: Uint8Array, start = 0, end = bytes.length): boolean {
    if (!this.#reserve(end - start)) return false;
    if (end - start < SHORT) for (let i = start; i < end; i++) this.#bytes[this.#length++] = bytes[i] as number;
    else {
      this.#bytes.set(bytes.subarray(start, end), this.#length);
      this.#length += end - start;
    }
    return true;
  }

  /** Returns the bytes and empties the buffer. The result is valid until the next byte is added. */
  take(): Uint8Array {
    const bytes = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return bytes;
  }

  /** Returns the bytes as text and empties the buffer. Undefined if they are not UTF-8. */
  takeText(): string | undefined {
    return this.#length === 0 ? '' : decodeUtf8(this.take());
  }

  /** As {@link takeText}, but the buffer keeps its bytes. */
  peekText(): string | undefined {
    return decodeUtf8(this.#bytes.subarray(0, this.#length));
  }

  #reserve(more: number): boolean {
    const length = this.#length + more;
    if (length > this.maxLength) return false;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(length, 2 * this.#bytes.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
    }
    return true;
  }
}
