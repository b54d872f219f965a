import { BodyError } from '../body-error.ts';
import { type JsonHandler, JsonLexer } from '../parse/json.ts';
import { parseJsonString } from '../parse/json-string.ts';
import { Bytes } from './bytes.ts';
import type { FieldReader, Found } from './field-value.ts';

/** Longest property name that is looked at, in bytes as written. */
const MAX_KEY_BYTES = 4_096;
/** Of one character, as an escape. */
const ESCAPE_BYTES = 6;
const QUOTE = 0x22;

/** A property of the outermost object. */
export class JsonField implements FieldReader, JsonHandler {
  readonly #lexer = new JsonLexer(this);
  readonly #key = new Bytes(MAX_KEY_BYTES);
  readonly #value: Bytes;
  #depth = 0;
  /** Whether the outermost value is an object. */
  #isObject = false;
  /** Where the lexemes of now go. */
  #role: 'key' | 'value' | 'other' = 'other';

  constructor(private readonly found: Found) {
    this.#value = new Bytes(found.maxBytes * ESCAPE_BYTES + 2);
  }

  write(bytes: Uint8Array): void {
    this.#lexer.write(bytes);
    this.#check();
  }

  end(): string {
    this.#lexer.end();
    this.#check();
    return this.found.get();
  }

  open(isObject: boolean): void {
    if (this.#role === 'value') throw this.#noText();
    if (this.#depth++ === 0) this.#isObject = isObject;
    this.#expectKey();
  }

  close(): void {
    this.#depth--;
    this.#expectKey();
  }

  lexeme(bytes: Uint8Array, start: number, end: number): void {
    if (this.#role === 'key' && !this.#key.add(bytes, start, end)) {
      throw this.found.ambiguous(`there is a property with a name of more than ${MAX_KEY_BYTES} bytes`);
    }
    if (this.#role === 'value' && !this.#value.add(bytes, start, end)) throw this.found.tooLong();
  }

  lexemeEnd(isKey: boolean): void {
    if (isKey && this.#role === 'key') {
      const key = parseJsonString(this.#key.take());
      this.#role = this.found.matches(key) ? 'value' : 'other';
    } else if (!isKey) {
      if (this.#role === 'value') this.#set();
      this.#expectKey();
    }
  }

  /** What comes after a value, or first in an object: a name, where this is the outermost object. */
  #expectKey(): void {
    this.#role = this.#isObject && this.#depth === 1 ? 'key' : 'other';
  }

  #set(): void {
    if (this.#value.first !== QUOTE) throw this.#noText();
    const value = parseJsonString(this.#value.take());
    if (new TextEncoder().encode(value).length > this.found.maxBytes) throw this.found.tooLong();
    // Half a surrogate pair is no text: on its way on it becomes something else.
    this.found.set(/\p{Surrogate}/u.test(value) ? undefined : value);
  }

  #noText(): BodyError {
    return this.found.error('field_not_text', 'must be a string');
  }

  #check(): void {
    const { malformed } = this.#lexer;
    if (malformed !== undefined) throw new BodyError(422, 'malformed_json', `The body is not JSON: ${malformed}.`);
  }
}
