import { createDigest, type Digest, digestBytes } from '../platform.ts';

/** Content longer than this, in bytes, is represented by its digest. */
const MAX_PLAIN = 1_024;
const [PLAIN, DIGESTED] = [0x70, 0x64];
/** Bytes of the length in front of a field. */
export const LENGTH_BYTES = 4;
/** A nested field begins with its length and with the byte that says whether it is digested. */
const FIELD_HEAD = LENGTH_BYTES + 1;

/** Bytes that a buffer begins with. */
const START_BYTES = 512;
/** Bytes of an allocation that buffers share. A slow body keeps all of it, so it is short. */
const SHARED_BYTES = 8_192;
let shared = new Uint8Array(0);
let taken = 0;

/** Most bodies need no more, and an allocation of each buffer's own costs more than to fill it. */
function takeStart(): Uint8Array {
  if (taken + START_BYTES > shared.length) {
    shared = new Uint8Array(SHARED_BYTES);
    taken = 0;
  }
  taken += START_BYTES;
  return shared.subarray(taken - START_BYTES, taken);
}

/** Content that waits until the content inside of it ended. */
interface Outer {
  readonly start: number;
  readonly digest: Digest | undefined;
  readonly isGroup: boolean;
}

/**
 * Collects bytes of any length and returns a short representation of exactly these bytes: the bytes themselves, or
 * their digest if there are many. It is cheap for a few bytes, and needs constant memory for many.
 *
 * Fields are nested without copies: a field is written where it will stay, and only its length is filled in later.
 */
export class DigestBuffer {
  #buffer = takeStart();
  #length = 0;
  /** Where the innermost content begins. The bytes before it belong to the content around it. */
  #start = 0;
  /** Has the first bytes of the innermost content, if it is long. */
  #digest: Digest | undefined;
  /** Whether the innermost content is a group, which must stay as it is. */
  #isGroup = false;
  readonly #outer: Outer[] = [];

  /** Where the next byte will be. */
  get position(): number {
    return this.#length;
  }

  /** The buffer itself, up to {@link position}. Valid until the next byte is added. */
  get bytes(): Uint8Array {
    return this.#buffer;
  }

  byte(value: number): void {
    if (this.#length === this.#buffer.length) this.#reserve(1);
    this.#buffer[this.#length++] = value;
  }

  write(bytes: Uint8Array, start = 0, end = bytes.length): void {
    const length = end - start;
    if (length > MAX_PLAIN && !this.#isGroup) {
      this.#spill();
      this.#digest?.update(bytes.subarray(start, end));
      return;
    }
    if (this.#length + length > this.#buffer.length) this.#reserve(length);
    if (length < 32) for (let i = start; i < end; i++) this.#buffer[this.#length++] = bytes[i] as number;
    else {
      this.#buffer.set(bytes.subarray(start, end), this.#length);
      this.#length += length;
    }
  }

  /** Adds the length and the bytes, so that later bytes cannot be confused with the end of this field. */
  field(bytes: Uint8Array, start = 0, end = bytes.length): void {
    this.beginLength();
    this.#writeLength(this.#length - LENGTH_BYTES, end - start);
    this.write(bytes, start, end);
  }

  /** As {@link field}, for text with one character per byte. */
  text(text: string): void {
    const { length } = text;
    this.beginLength();
    this.#writeLength(this.#length - LENGTH_BYTES, length);
    for (let i = 0; i < length; i++) this.byte(text.charCodeAt(i));
  }

  /** Leaves room for the length of bytes that follow. Only inside a group, because the length must still be there. */
  beginLength(): void {
    this.#reserve(LENGTH_BYTES);
    this.#length += LENGTH_BYTES;
  }

  /** @param start where the bytes begin: {@link position} after `beginLength` */
  endLength(start: number): void {
    this.#writeLength(start - LENGTH_BYTES, this.#length - start);
  }

  /** The length in front of a name or a field that is still in the buffer. */
  lengthAt(at: number): number {
    const bytes = this.#buffer;
    return (
      ((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)
    );
  }

  /**
   * Begins a field whose length is not known yet. Until {@link endField}, everything that is added belongs to it. What
   * {@link field} would add for the result of {@link finish} is added for the field.
   */
  beginField(): void {
    this.#reserve(FIELD_HEAD);
    this.#length += FIELD_HEAD;
    this.#begin(false);
  }

  /** Returns where the representation of the field begins; it ends at {@link position}. */
  endField(): number {
    const start = this.#start;
    const isDigested = this.#digest !== undefined || this.#length - start > MAX_PLAIN;
    if (isDigested) {
      const digest = this.#takeDigest();
      this.#length = start;
      this.#reserve(digest.length);
      this.#buffer.set(digest, start);
      this.#length += digest.length;
    }
    this.#buffer[start - 1] = isDigested ? DIGESTED : PLAIN;
    this.#writeLength(start - FIELD_HEAD, this.#length - start + 1);
    this.#end();
    return start - 1;
  }

  /** Begins content that stays in the buffer until {@link endGroup}, so that it can be put into another order. */
  beginGroup(): void {
    this.#begin(true);
  }

  endGroup(): void {
    this.#end();
    // Content that consists of groups grows only inside of them, where nothing can be digested.
    this.#spillIfLong();
  }

  /** Returns at most 1,025 bytes, equal if and only if the contents are equal, and empties the buffer. */
  finish(): Uint8Array {
    const isDigested = this.#digest !== undefined || this.#length > MAX_PLAIN;
    const content = isDigested ? this.#takeDigest() : this.#buffer.subarray(0, this.#length);
    const result = new Uint8Array(content.length + 1);
    result[0] = isDigested ? DIGESTED : PLAIN;
    result.set(content, 1);
    this.#length = 0;
    return result;
  }

  #begin(isGroup: boolean): void {
    this.#outer.push({ start: this.#start, digest: this.#digest, isGroup: this.#isGroup });
    this.#start = this.#length;
    this.#digest = undefined;
    this.#isGroup = isGroup;
  }

  #end(): void {
    const { start, digest, isGroup } = this.#outer.pop() as Outer;
    this.#start = start;
    this.#digest = digest;
    this.#isGroup = isGroup;
  }

  #takeDigest(): Uint8Array {
    const rest = this.#buffer.subarray(this.#start, this.#length);
    const digest = this.#digest;
    this.#digest = undefined;
    if (digest === undefined) return digestBytes(rest);
    digest.update(rest);
    return digest.digest();
  }

  #writeLength(at: number, length: number): void {
    this.#buffer[at] = length >>> 24;
    this.#buffer[at + 1] = length >>> 16;
    this.#buffer[at + 2] = length >>> 8;
    this.#buffer[at + 3] = length;
  }

  #reserve(length: number): void {
    if (this.#length + length <= this.#buffer.length) return;
    this.#spillIfLong();
    const needed = this.#length + length;
    if (needed <= this.#buffer.length) return;
    const larger = new Uint8Array(Math.max(needed, this.#buffer.length * 2));
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }

  /** Content this long becomes a digest, so its bytes need no memory. */
  #spillIfLong(): void {
    if (this.#length - this.#start > MAX_PLAIN && !this.#isGroup) this.#spill();
  }

  #spill(): void {
    this.#digest ??= createDigest();
    if (this.#length > this.#start) this.#digest.update(this.#buffer.subarray(this.#start, this.#length));
    this.#length = this.#start;
  }
}
