import { BodyError } from '../body-error.ts';
import { type JsonHandler, JsonLexer } from '../parse/json.ts';
import { parseJsonString } from '../parse/utf8.ts';
import { BoundedBuffer } from './bounded-buffer.ts';
import type { FieldReader, FieldValue } from './field-value.ts';

/** Longest property name that is compared, in bytes as written. */
const MAX_KEY_BYTES = 4_096;
/** Length of one character written as an escape. */
const ESCAPE_BYTES = 6;
const QUOTE = 0x22;

/** Reads a property of the outermost JSON object. */
export class JsonField implements FieldReader, JsonHandler {
  readonly #lexer = new JsonLexer(this);
  readonly #key = new BoundedBuffer(MAX_KEY_BYTES);
  readonly #value: BoundedBuffer;
  #depth = 0;
  /** Whether the outermost value is an object. */
  #isObject = false;
  /** What the current lexeme is: a name in the outermost object, the field's value, or something else. */
  #role: 'key' | 'value' | 'other' = 'other';

  constructor(private readonly field: FieldValue) {
    this.#value = new BoundedBuffer(field.maxBytes * ESCAPE_BYTES + 2);
  }

  write(bytes: Uint8Array): void {
    this.#lexer.write(bytes);
    this.#check();
  }

  end(): string {
    this.#lexer.end();
    this.#check();
    return this.field.get();
  }

  open(isObject: boolean): void {
    if (this.#role === 'value') throw this.#notText();
    if (this.#depth++ === 0) this.#isObject = isObject;
    this.#expectKey();
  }

  close(): void {
    this.#depth--;
    this.#expectKey();
  }

  lexeme(bytes: Uint8Array, start: number, end: number): void {
    if (this.#role === 'key' && !this.#key.add(bytes, start, end)) {
      throw this.field.ambiguous(`another property has a name of more than ${MAX_KEY_BYTES} bytes`);
    }
    if (this.#role === 'value' && !this.#value.add(bytes, start, end)) throw this.field.tooLong();
  }

  lexemeEnd(isKey: boolean): void {
    if (isKey && this.#role === 'key') {
      const key = parseJsonString(this.#key.take());
      this.#role = this.field.matches(key) ? 'value' : 'other';
    } else if (!isKey) {
      if (this.#role === 'value') this.#set();
      this.#expectKey();
    }
  }

  /** After a value, or at the start of an object, a name follows if this is the outermost object. */
  #expectKey(): void {
    this.#role = this.#isObject && this.#depth === 1 ? 'key' : 'other';
  }

  #set(): void {
    if (this.#value.first !== QUOTE) throw this.#notText();
    const value = parseJsonString(this.#value.take());
    if (new TextEncoder().encode(value).length > this.field.maxBytes) throw this.field.tooLong();
    // Half a surrogate pair is not text: the next program that encodes it would change it.
    this.field.set(/\p{Surrogate}/u.test(value) ? undefined : value);
  }

  #notText(): BodyError {
    return this.field.error('field_not_text', 'must be a string');
  }

  #check(): void {
    const { malformed } = this.#lexer;
    if (malformed !== undefined) throw new BodyError(422, 'malformed_json', `The body is not JSON: ${malformed}.`);
  }
}
