import { type JsonHandler, JsonLexer } from '../parse/json.ts';
import { parseJsonString } from '../parse/json-string.ts';
import { bytesOfLatin1 } from '../platform.ts';
import {
  type BodyEntry,
  type BodyFingerprint,
  type BodyFingerprinter,
  BytesFingerprinter,
  MAX_ENTRIES,
  readableLabel,
} from './body-fingerprint.ts';
import { DigestBuffer } from './digest-buffer.ts';

/** A body with a longer property name, in bytes as written, is compared by its bytes. */
const MAX_KEY_BYTES = 65_536;
/** A body is compared by its bytes if its unfinished objects need more memory than this, in bytes. */
const MAX_BUFFERED_BYTES = 4_194_304;
const MEMBER_OVERHEAD = 128;
/** A name without escapes. */
const PLAIN = /^[\x20-\x5b\x5d-\x7e]*$/;
const [COMMA, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x2c, 0x5b, 0x5d, 0x7b, 0x7d];

interface Member {
  /** As written, one character per byte. */
  readonly key: string;
  readonly value: Uint8Array;
}

interface Container {
  /** The container itself is written here when it ends. */
  readonly outer: DigestBuffer;
  /** By decoded name; undefined for an array. */
  readonly members: Map<string, Member> | undefined;
  bufferedBytes: number;
}

/**
 * Compares JSON without its white space and without the order of its properties; everything else is compared as it is
 * written. If the text is not JSON, or if parsers disagree about it (a name given twice), the body is compared by its
 * bytes.
 */
export class JsonFingerprinter implements BodyFingerprinter, JsonHandler {
  readonly #lexer = new JsonLexer(this);
  readonly #bytes = new BytesFingerprinter();
  readonly #root = new DigestBuffer();
  readonly #stack: Container[] = [];
  /** The current value is written here. Between two values of an object nothing is written. */
  #target: DigestBuffer = this.#root;
  /** Empty buffers that can be reused. */
  readonly #spare: DigestBuffer[] = [];
  #key = '';
  #keys: { readonly decoded: string; readonly raw: string }[] = [];
  #isKey = false;
  #bufferedBytes = 0;
  #useBytes = false;
  #rootMembers: readonly Member[] = [];

  write(bytes: Uint8Array): void {
    this.#bytes.write(bytes);
    this.#lexer.write(bytes);
  }

  end(): BodyFingerprint {
    this.#lexer.end();
    if (this.#useBytes || this.#lexer.malformed !== undefined) return this.#bytes.end();
    return { kind: 'json', total: this.#root.finish(), entries: entriesOf(this.#rootMembers) };
  }

  open(isObject: boolean): void {
    if (this.#useBytes) return;
    this.#stack.push({ outer: this.#target, members: isObject ? new Map() : undefined, bufferedBytes: 0 });
    if (!isObject) this.#target.byte(OPEN_ARRAY);
    this.#isKey = isObject;
  }

  close(isObject: boolean): void {
    if (this.#useBytes) return;
    const { outer, members, bufferedBytes } = this.#stack.pop() as Container;
    this.#bufferedBytes -= bufferedBytes;
    this.#target = outer;
    if (members !== undefined) this.#writeMembers(members, outer);
    outer.byte(isObject ? CLOSE_OBJECT : CLOSE_ARRAY);
    this.#valueEnd();
  }

  lexeme(bytes: Uint8Array, start: number, end: number): void {
    if (this.#useBytes) return;
    if (!this.#isKey) this.#target.write(bytes, start, end);
    else if (this.#key.length + end - start > MAX_KEY_BYTES) this.#giveUp();
    else for (let i = start; i < end; i++) this.#key += String.fromCharCode(bytes[i] as number);
  }

  lexemeEnd(isKey: boolean): void {
    if (this.#useBytes) return;
    if (!isKey) {
      this.#target.byte(COMMA);
      this.#valueEnd();
      return;
    }
    const raw = this.#key;
    this.#key = '';
    const decoded = PLAIN.test(raw) ? raw.slice(1, -1) : parseJsonString(bytesOfLatin1(raw));
    if (this.#stack.at(-1)?.members?.has(decoded)) {
      this.#giveUp();
      return;
    }
    this.#keys.push({ decoded, raw });
    this.#isKey = false;
    this.#target = this.#spare.pop() ?? new DigestBuffer();
  }

  #valueEnd(): void {
    const container = this.#stack.at(-1);
    this.#isKey = container?.members !== undefined;
    if (container?.members === undefined) return;
    const { decoded, raw } = this.#keys.pop() as { decoded: string; raw: string };
    const value = this.#target.finish();
    this.#spare.push(this.#target);
    container.members.set(decoded, { key: raw, value });
    const bytes = raw.length + value.length + MEMBER_OVERHEAD;
    container.bufferedBytes += bytes;
    this.#bufferedBytes += bytes;
    if (this.#bufferedBytes > MAX_BUFFERED_BYTES) this.#giveUp();
  }

  #writeMembers(members: ReadonlyMap<string, Member>, outer: DigestBuffer): void {
    const sorted = [...members.values()].sort((left, right) => (left.key < right.key ? -1 : 1));
    outer.byte(OPEN_OBJECT);
    for (const { key, value } of sorted) {
      outer.text(key);
      outer.field(value);
    }
    if (this.#stack.length === 0) this.#rootMembers = sorted;
  }

  /** Compares the body by its bytes from now on, and frees the buffers. */
  #giveUp(): void {
    this.#useBytes = true;
    this.#stack.length = 0;
    this.#keys = [];
    this.#key = '';
    this.#spare.length = 0;
  }
}

function entriesOf(members: readonly Member[]): readonly BodyEntry[] {
  if (members.length > MAX_ENTRIES) return [];
  return members.map(({ key, value }) => {
    const name = bytesOfLatin1(key);
    return { label: readableLabel(name.subarray(1, -1)), name, content: value };
  });
}
