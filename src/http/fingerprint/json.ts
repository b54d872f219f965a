import { type JsonHandler, JsonLexer } from '../parse/json.ts';
import { parseJsonString } from '../parse/json-string.ts';
import {
  type BodyEntry,
  type BodyFingerprint,
  type BodyFingerprinter,
  BytesFingerprinter,
  MAX_ENTRIES,
  readableLabel,
} from './body-fingerprint.ts';
import { DigestBuffer, LENGTH_BYTES } from './digest-buffer.ts';

/** A body with a longer property name, in bytes as written, is compared by its bytes. */
const MAX_KEY_BYTES = 65_536;
/** A body is compared by its bytes if its unfinished objects need more memory than this, in bytes. */
const MAX_BUFFERED_BYTES = 4_194_304;
const MEMBER_OVERHEAD = 128;
const NONE = -1;
const [COMMA, OPEN_ARRAY, BACKSLASH, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x2c, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

/** An object or array that has not ended. One per level, used again and again. */
interface Container {
  isObject: boolean;
  /** For an object: how many members of the containers around it there are. */
  firstMember: number;
  /** Whether the names came in ascending order so far, so that none is there twice. */
  isSorted: boolean;
  hasEscapedName: boolean;
  bufferedBytes: number;
}

/**
 * Compares JSON without its white space and without the order of its properties; everything else is compared as it is
 * written. If the text is not JSON, or if parsers disagree about it (a name given twice), the body is compared by its
 * bytes.
 *
 * Each member is written to the place where it is needed if the names are in order: its name and its value, each with
 * its length. Only an object whose names are in another order is rearranged when it ends.
 */
export class JsonFingerprinter implements BodyFingerprinter, JsonHandler {
  readonly #lexer = new JsonLexer(this);
  readonly #bytes = new BytesFingerprinter();
  #buffer = new DigestBuffer();
  readonly #containers: Container[] = [];
  #depth = 0;
  /** Where each member of the unfinished objects begins in the buffer, outermost object first. */
  #members: number[] = [];
  #isKey = false;
  /** Where the current name begins in the buffer; {@link NONE} before its first byte. */
  #keyStart = NONE;
  #bufferedBytes = 0;
  #useBytes = false;
  #entries: readonly BodyEntry[] = [];

  write(bytes: Uint8Array): void {
    this.#bytes.write(bytes);
    this.#lexer.write(bytes);
  }

  end(): BodyFingerprint {
    this.#lexer.end();
    if (this.#useBytes || this.#lexer.malformed !== undefined) return this.#bytes.end();
    return { kind: 'json', total: this.#buffer.finish(), entries: this.#entries };
  }

  open(isObject: boolean): void {
    if (this.#useBytes) return;
    this.#buffer.byte(isObject ? OPEN_OBJECT : OPEN_ARRAY);
    if (isObject) this.#buffer.beginGroup();
    this.#enter(isObject);
    this.#isKey = isObject;
  }

  close(isObject: boolean): void {
    if (this.#useBytes) return;
    const container = this.#containers[--this.#depth] as Container;
    this.#bufferedBytes -= container.bufferedBytes;
    if (isObject) {
      this.#endMembers(container);
      if (this.#useBytes) return;
    }
    this.#buffer.byte(isObject ? CLOSE_OBJECT : CLOSE_ARRAY);
    this.#valueEnd();
  }

  lexeme(bytes: Uint8Array, start: number, end: number): void {
    if (this.#useBytes) return;
    if (this.#isKey) this.#keyPiece(bytes, start, end);
    else this.#buffer.write(bytes, start, end);
  }

  lexemeEnd(isKey: boolean): void {
    if (this.#useBytes) return;
    if (isKey) this.#keyEnd();
    else {
      this.#buffer.byte(COMMA);
      this.#valueEnd();
    }
  }

  #enter(isObject: boolean): void {
    let container = this.#containers[this.#depth++];
    if (container === undefined) {
      container = { isObject, firstMember: 0, isSorted: true, hasEscapedName: false, bufferedBytes: 0 };
      this.#containers.push(container);
    }
    container.isObject = isObject;
    container.firstMember = this.#members.length;
    container.isSorted = true;
    container.hasEscapedName = false;
    container.bufferedBytes = 0;
  }

  #keyPiece(bytes: Uint8Array, start: number, end: number): void {
    const buffer = this.#buffer;
    if (this.#keyStart === NONE) {
      this.#members.push(buffer.position);
      buffer.beginLength();
      this.#keyStart = buffer.position;
    }
    if (buffer.position - this.#keyStart + end - start > MAX_KEY_BYTES) {
      this.#giveUp();
      return;
    }
    buffer.write(bytes, start, end);
    const container = this.#containers[this.#depth - 1] as Container;
    for (let i = start; i < end; i++) if (bytes[i] === BACKSLASH) container.hasEscapedName = true;
  }

  #keyEnd(): void {
    const container = this.#containers[this.#depth - 1] as Container;
    this.#buffer.endLength(this.#keyStart);
    const last = this.#members.length - 1;
    if (container.isSorted && last > container.firstMember)
      container.isSorted = this.#compareNames(this.#members[last - 1] as number, this.#members[last] as number) < 0;
    this.#isKey = false;
    this.#keyStart = NONE;
    this.#buffer.beginField();
  }

  #valueEnd(): void {
    if (this.#depth === 0) return;
    const container = this.#containers[this.#depth - 1] as Container;
    this.#isKey = container.isObject;
    if (!container.isObject) return;
    const valueStart = this.#buffer.endField();
    const keyBytes = this.#buffer.lengthAt(this.#members[this.#members.length - 1] as number);
    const bytes = keyBytes + this.#buffer.position - valueStart + MEMBER_OVERHEAD;
    container.bufferedBytes += bytes;
    this.#bufferedBytes += bytes;
    if (this.#bufferedBytes > MAX_BUFFERED_BYTES) this.#giveUp();
  }

  /** Puts the members of an object into the order of their names. */
  #endMembers({ firstMember, isSorted, hasEscapedName }: Container): void {
    const starts = this.#members;
    const hasMany = starts.length - firstMember > 1;
    if (hasMany && ((!isSorted && !this.#sort(firstMember)) || (hasEscapedName && !this.#isUnambiguous(firstMember)))) {
      this.#giveUp();
      return;
    }
    if (this.#depth === 0 && starts.length <= MAX_ENTRIES) this.#entries = starts.map((start) => this.#entry(start));
    starts.length = firstMember;
    this.#buffer.endGroup();
  }

  /** Returns false if two names are equal. */
  #sort(firstMember: number): boolean {
    const { bytes, position } = this.#buffer;
    const starts = this.#members.slice(firstMember);
    const order = starts.map((_, i) => i);
    const compare = (left: number, right: number): number =>
      this.#compareNames(starts[left] as number, starts[right] as number);
    order.sort(compare);
    for (let i = 1; i < order.length; i++) if (compare(order[i - 1] as number, order[i] as number) === 0) return false;
    const first = starts[0] as number;
    const copy = bytes.slice(first, position);
    let to = first;
    order.forEach((member, i) => {
      this.#members[firstMember + i] = to;
      const [start, end] = [(starts[member] as number) - first, (starts[member + 1] ?? position) - first];
      bytes.set(copy.subarray(start, end), to);
      to += end - start;
    });
    return true;
  }

  /** Whether no two names are equal after their escapes are decoded. */
  #isUnambiguous(firstMember: number): boolean {
    const names = new Set<string>();
    for (let i = firstMember; i < this.#members.length; i++)
      names.add(parseJsonString(this.#name(this.#members[i] as number)));
    return names.size === this.#members.length - firstMember;
  }

  /** Compares the names of two members, as written, by their bytes. */
  #compareNames(left: number, right: number): number {
    const { bytes } = this.#buffer;
    const [leftLength, rightLength] = [this.#buffer.lengthAt(left), this.#buffer.lengthAt(right)];
    const length = Math.min(leftLength, rightLength);
    for (let i = LENGTH_BYTES; i < length + LENGTH_BYTES; i++) {
      const difference = (bytes[left + i] as number) - (bytes[right + i] as number);
      if (difference !== 0) return difference;
    }
    return leftLength - rightLength;
  }

  /** The name of a member as written. A view. */
  #name(start: number): Uint8Array {
    const nameStart = start + LENGTH_BYTES;
    return this.#buffer.bytes.subarray(nameStart, nameStart + this.#buffer.lengthAt(start));
  }

  #entry(start: number): BodyEntry {
    const name = this.#name(start).slice();
    const valueStart = start + LENGTH_BYTES + name.length;
    const contentStart = valueStart + LENGTH_BYTES;
    const content = this.#buffer.bytes.slice(contentStart, contentStart + this.#buffer.lengthAt(valueStart));
    return { label: readableLabel(name.subarray(1, -1)), name, content };
  }

  /** Compares the body by its bytes from now on, and frees the buffers. */
  #giveUp(): void {
    this.#useBytes = true;
    this.#buffer = new DigestBuffer();
    this.#members = [];
  }
}
