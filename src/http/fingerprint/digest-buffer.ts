import { createDigest, type Digest } from '../platform.ts';

/** Content longer than this, in bytes, is represented by its digest. */
const MAX_PLAIN = 1_024;
const MAX_BUFFERED = 4_096;
const [PLAIN, DIGESTED] = [0x70, 0x64];

/**
 * Collects bytes of any length and returns a short representation of exactly these bytes: the bytes themselves, or
 * their digest if there are many. It is cheap for a few bytes, and needs constant memory for many.
 */
export class DigestBuffer {
  #buffer = new Uint8Array(64);
  #length = 0;
  #digest: Digest | undefined;

  byte(value: number): void {
    if (this.#length === this.#buffer.length) this.#reserve(1);
    this.#buffer[this.#length++] = value;
  }

  write(bytes: Uint8Array, start = 0, end = bytes.length): void {
    const length = end - start;
    if (length > MAX_PLAIN) {
      this.#spill();
      this.#digest?.update(bytes.subarray(start, end));
      return;
    }
    this.#reserve(length);
    if (length < 16) for (let i = start; i < end; i++) this.#buffer[this.#length++] = bytes[i] as number;
    else {
      this.#buffer.set(bytes.subarray(start, end), this.#length);
      this.#length += length;
    }
  }

  /** Adds the length and the bytes, so that later bytes cannot be confused with the end of this field. */
  field(bytes: Uint8Array): void {
    this.#writeLength(bytes.length);
    this.write(bytes);
  }

  /** As {@link field}, for text that has one character per byte. */
  text(text: string): void {
    const { length } = text;
    this.#writeLength(length);
    if (length <= MAX_PLAIN) {
      this.#reserve(length);
      for (let i = 0; i < length; i++) this.#buffer[this.#length++] = text.charCodeAt(i);
    } else for (let i = 0; i < length; i++) this.byte(text.charCodeAt(i));
  }

  /** Returns at most 1,025 bytes, equal if and only if the contents are equal, and empties the buffer. */
  finish(): Uint8Array {
    const digested = this.#digest !== undefined || this.#length > MAX_PLAIN;
    if (digested) this.#spill();
    const content = this.#digest?.digest() ?? this.#buffer.subarray(0, this.#length);
    const result = new Uint8Array(content.length + 1);
    result[0] = digested ? DIGESTED : PLAIN;
    result.set(content, 1);
    this.#digest = undefined;
    this.#length = 0;
    return result;
  }

  #writeLength(length: number): void {
    this.#reserve(4);
    for (let shift = 24; shift >= 0; shift -= 8) this.#buffer[this.#length++] = (length >>> shift) & 0xff;
  }

  #reserve(length: number): void {
    const needed = this.#length + length;
    if (needed <= this.#buffer.length) return;
    if (needed > MAX_BUFFERED) {
      this.#spill();
      return;
    }
    const larger = new Uint8Array(Math.min(MAX_BUFFERED, Math.max(needed, this.#buffer.length * 2)));
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }

  #spill(): void {
    this.#digest ??= createDigest();
    this.#digest.update(this.#buffer.subarray(0, this.#length));
    this.#length = 0;
  }
}
