import { type JsonHandler, JsonLexer } from '../parse/json.ts';
import { parseJsonString } from '../parse/json-string.ts';
import { bytesOfLatin1 } from '../platform.ts';
import { type BodyEntry, type BodyPrint, type BodyPrinter, labelOf, MAX_ENTRIES } from './body-print.ts';
import { BytesPrinter } from './bytes.ts';
import { Sink } from './sink.ts';

/** Longest property name that is told apart, in bytes as written. */
const MAX_KEY_BYTES = 65_536;
/** Most that is held of objects whose end has not come, in bytes; past it the bytes count. */
const MAX_HELD_BYTES = 4_194_304;
const MEMBER_OVERHEAD = 128;
/** A name with nothing to decode. */
const PLAIN = /^[\x20-\x5b\x5d-\x7e]*$/;
const [COMMA, OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x2c, 0x5b, 0x5d, 0x7b, 0x7d];

interface Member {
  /** As it is written, one character for each byte. */
  readonly key: string;
  readonly value: Uint8Array;
}

interface Container {
  /** Where the container itself is written. */
  readonly outer: Sink;
  /** Of an object, by decoded name. */
  readonly members: Map<string, Member> | undefined;
  held: number;
}

/**
 * JSON without its white space and with its properties in one order; everything else counts as it is written. What is no JSON, and what
 * parsers disagree on (a name given twice), is compared by its bytes.
 */
export class JsonPrinter implements BodyPrinter, JsonHandler {
  readonly #lexer = new JsonLexer(this);
  readonly #bytes = new BytesPrinter();
  readonly #root = new Sink();
  readonly #stack: Container[] = [];
  /** Where the value under way is written; an object has none between two of its values. */
  #target: Sink = this.#root;
  /** Sinks that can be used again. */
  readonly #spare: Sink[] = [];
  #key = '';
  #keys: { readonly decoded: string; readonly raw: string }[] = [];
  #isKey = false;
  #held = 0;
  #isUnsure = false;
  #rootMembers: readonly Member[] = [];

  write(bytes: Uint8Array): void {
    this.#bytes.write(bytes);
    this.#lexer.write(bytes);
  }

  end(): BodyPrint {
    this.#lexer.end();
    if (this.#isUnsure || this.#lexer.malformed !== undefined) return this.#bytes.end();
    return { kind: 'json', total: this.#root.finish(), entries: entriesOf(this.#rootMembers) };
  }

  open(isObject: boolean): void {
    if (this.#isUnsure) return;
    this.#stack.push({ outer: this.#target, members: isObject ? new Map() : undefined, held: 0 });
    if (!isObject) this.#target.byte(OPEN_ARRAY);
    this.#isKey = isObject;
  }

  close(isObject: boolean): void {
    if (this.#isUnsure) return;
    const { outer, members, held } = this.#stack.pop() as Container;
    this.#held -= held;
    this.#target = outer;
    if (members !== undefined) this.#writeMembers(members, outer);
    outer.byte(isObject ? CLOSE_OBJECT : CLOSE_ARRAY);
    this.#valueEnd();
  }

  lexeme(bytes: Uint8Array, start: number, end: number): void {
    if (this.#isUnsure) return;
    if (!this.#isKey) this.#target.write(bytes, start, end);
    else if (this.#key.length + end - start > MAX_KEY_BYTES) this.#giveUp();
    else for (let i = start; i < end; i++) this.#key += String.fromCharCode(bytes[i] as number);
  }

  lexemeEnd(isKey: boolean): void {
    if (this.#isUnsure) return;
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
    this.#target = this.#spare.pop() ?? new Sink();
  }

  #valueEnd(): void {
    const container = this.#stack.at(-1);
    this.#isKey = container?.members !== undefined;
    if (container?.members === undefined) return;
    const { decoded, raw } = this.#keys.pop() as { decoded: string; raw: string };
    const value = this.#target.finish();
    this.#spare.push(this.#target);
    container.members.set(decoded, { key: raw, value });
    const held = raw.length + value.length + MEMBER_OVERHEAD;
    container.held += held;
    this.#held += held;
    if (this.#held > MAX_HELD_BYTES) this.#giveUp();
  }

  #writeMembers(members: ReadonlyMap<string, Member>, outer: Sink): void {
    const sorted = [...members.values()].sort((left, right) => (left.key < right.key ? -1 : 1));
    outer.byte(OPEN_OBJECT);
    for (const { key, value } of sorted) {
      outer.text(key);
      outer.field(value);
    }
    if (this.#stack.length === 0) this.#rootMembers = sorted;
  }

  /** From here on the bytes count; what was held is let go. */
  #giveUp(): void {
    this.#isUnsure = true;
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
    return { label: labelOf(name.subarray(1, -1)), name, content: value };
  });
}
