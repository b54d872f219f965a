import { type JsonHandler, JsonLexer } from '../parse/json.ts';
import { parseJsonString } from '../parse/utf8.ts';
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
/** Up to this length, in bytes, a loop is faster than a view. */
const SHORT = 64;
const [COMMA, OPEN_ARRAY, BACKSLASH, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x2c, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

/** An object or array that did not end yet. One per level, used again and again. */
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
  /** Where members are sorted. */
  #scratch = new Uint8Array(0);
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
    const members = this.#members;
    const sorted = this.#sorted(firstMember);
    const { bytes, position } = this.#buffer;
    const first = members[firstMember] as number;
    const copy = this.#scratchOf(position - first);
    let to = 0;
    for (let i = 0; i < sorted.length; i++) {
      const start = sorted[i] as number;
      if (i > 0 && this.#compareNames(sorted[i - 1] as number, start) === 0) return false;
      const end = this.#memberEnd(start);
      members[firstMember + i] = first + to;
      if (end - start < SHORT) for (let at = start; at < end; at++) copy[to++] = bytes[at] as number;
      else {
        copy.set(bytes.subarray(start, end), to);
        to += end - start;
      }
    }
    if (to < SHORT) for (let at = 0; at < to; at++) bytes[first + at] = copy[at] as number;
    else bytes.set(copy.subarray(0, to), first);
    return true;
  }

  #sorted(firstMember: number): readonly number[] {
    const starts = this.#members.slice(firstMember);
    if (starts.length > 2) return starts.sort((left, right) => this.#compareNames(left, right));
    // Most small objects that are not in order consist of two members, and a sort costs more than they do.
    return starts.reverse();
  }

  #memberEnd(start: number): number {
    const valueStart = start + LENGTH_BYTES + this.#buffer.lengthAt(start);
    return valueStart + LENGTH_BYTES + this.#buffer.lengthAt(valueStart);
  }

  #scratchOf(length: number): Uint8Array {
    if (this.#scratch.length < length) this.#scratch = new Uint8Array(2 * length);
    return this.#scratch;
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
    const leftLength = this.#buffer.lengthAt(left);
    const rightLength = this.#buffer.lengthAt(right);
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
    this.#scratch = new Uint8Array(0);
  }
}
