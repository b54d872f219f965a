import { BodyError } from '../body-error.ts';
import { bytesOfLatin1 } from '../platform.ts';
import { JsonNumber } from './json-number.ts';
import { Utf8Check } from './utf8.ts';

/** Deepest nesting of objects and arrays. */
export const MAX_JSON_DEPTH = 64;

/** Receives the tokens of a JSON text in order. It gets strings and numbers as they are written, quotes included. */
export interface JsonHandler {
  open(isObject: boolean): void;
  close(isObject: boolean): void;
  /** A piece of a string, a number or a literal, cut anywhere. The bytes are valid only during the call. */
  lexeme(bytes: Uint8Array, start: number, end: number): void;
  lexemeEnd(isKey: boolean): void;
}

type State =
  | 'value'
  | 'first-value'
  | 'key'
  | 'first-key'
  | 'colon'
  | 'after'
  | 'string'
  | 'escape'
  | 'hex'
  | 'number'
  | 'literal';

const [QUOTE, COMMA, MINUS, ZERO, NINE, COLON] = [0x22, 0x2c, 0x2d, 0x30, 0x39, 0x3a];
const [OPEN_ARRAY, BACKSLASH, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5c, 0x5d, 0x7b, 0x7d];
const ESCAPES = /* @__PURE__ */ new Set(/* @__PURE__ */ bytesOfLatin1('"\\/bfnrt'));
const LITERALS = /* @__PURE__ */ byFirstByte('true', 'false', 'null');

/**
 * Reads JSON token by token while it arrives, in constant memory: strictly RFC 8259, in UTF-8, without a byte order
 * mark.
 */
export class JsonLexer {
  /** Why the text is not JSON. Once it is set, the handler is not called again. */
  malformed: string | undefined;
  #state: State = 'value';
  /** Whether each open container is an object. */
  readonly #containers: boolean[] = [];
  #isKey = false;
  /** How many hexadecimal digits of an escape, or characters of a literal, were read. */
  #seen = 0;
  #literal: Uint8Array = new Uint8Array(0);
  readonly #number = new JsonNumber();
  readonly #utf8 = new Utf8Check();

  constructor(private readonly handler: JsonHandler) {}

  /** @throws BodyError `too_deep` (422) */
  write(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length && this.malformed === undefined) at = this.#step(bytes, at);
  }

  /** Call it after the last byte: `malformed` is final then. */
  end(): void {
    if (this.malformed !== undefined) return;
    if (this.#state === 'number') this.#endNumber();
    if (this.malformed === undefined && (this.#state !== 'after' || this.#containers.length > 0))
      this.#fail('it is incomplete');
  }

  #step(bytes: Uint8Array, at: number): number {
    switch (this.#state) {
      case 'string':
      case 'escape':
      case 'hex':
        return this.#readString(bytes, at);
      case 'number':
        return this.#readNumber(bytes, at);
      case 'literal':
        return this.#readLiteral(bytes, at);
      default:
        return this.#readStructure(bytes, at);
    }
  }

  #readStructure(bytes: Uint8Array, at: number): number {
    const byte = bytes[at] as number;
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return at + 1;
    switch (this.#state) {
      case 'key':
      case 'first-key':
        if (byte === QUOTE) return this.#beginString(bytes, at, true);
        if (byte === CLOSE_OBJECT && this.#state === 'first-key') return this.#close(true, at);
        return this.#fail('a name is missing');
      case 'colon':
        if (byte !== COLON) return this.#fail('a colon is missing');
        this.#state = 'value';
        return at + 1;
      case 'after':
        return this.#readAfter(byte, at);
      default:
        if (byte === CLOSE_ARRAY && this.#state === 'first-value') return this.#close(false, at);
        return this.#beginValue(bytes, at, byte);
    }
  }

  #readAfter(byte: number, at: number): number {
    const isInObject = this.#containers.at(-1);
    if (byte === COMMA && isInObject !== undefined) {
      this.#state = isInObject ? 'key' : 'value';
      return at + 1;
    }
    if (byte === CLOSE_OBJECT && isInObject === true) return this.#close(true, at);
    if (byte === CLOSE_ARRAY && isInObject === false) return this.#close(false, at);
    return this.#fail('there is something after a value');
  }

  #beginValue(bytes: Uint8Array, at: number, byte: number): number {
    if (byte === QUOTE) return this.#beginString(bytes, at, false);
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) return this.#open(byte === OPEN_OBJECT, at);
    if (byte === MINUS || (byte >= ZERO && byte <= NINE)) {
      this.#state = 'number';
      this.#number.begin();
      return at;
    }
    const literal = LITERALS.get(byte);
    if (literal === undefined) return this.#fail('a value is missing');
    this.#state = 'literal';
    this.#literal = literal;
    this.#seen = 0;
    return at;
  }

  #open(isObject: boolean, at: number): number {
    if (this.#containers.length === MAX_JSON_DEPTH) {
      throw new BodyError(422, 'too_deep', `The JSON body is nested more than ${MAX_JSON_DEPTH} deep.`);
    }
    this.#containers.push(isObject);
    this.#state = isObject ? 'first-key' : 'first-value';
    this.handler.open(isObject);
    return at + 1;
  }

  #close(isObject: boolean, at: number): number {
    this.#containers.pop();
    this.#state = 'after';
    this.handler.close(isObject);
    return at + 1;
  }

  #beginString(bytes: Uint8Array, at: number, isKey: boolean): number {
    this.#isKey = isKey;
    this.#state = 'string';
    return this.#readString(bytes, at, at + 1);
  }

  /** @param from where to go on: behind the quote, if the string begins at `start` */
  #readString(bytes: Uint8Array, start: number, from = start): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (this.#state !== 'string') {
        if (!this.#readEscape(byte)) return this.#fail('a string has an unknown escape');
      } else if (byte === QUOTE && this.#utf8.pending === 0) {
        return this.#endLexeme(bytes, start, at + 1, this.#isKey ? 'colon' : 'after');
      } else if (!this.#readCharacter(byte))
        return this.#fail('a string has a byte that must be escaped, or is not UTF-8');
    }
    this.handler.lexeme(bytes, start, bytes.length);
    return bytes.length;
  }

  #readCharacter(byte: number): boolean {
    if (byte >= 0x80 || this.#utf8.pending > 0) return this.#utf8.take(byte);
    if (byte === BACKSLASH) this.#state = 'escape';
    return byte >= 0x20;
  }

  /** Reads a character after a backslash. */
  #readEscape(byte: number): boolean {
    if (this.#state === 'escape') {
      this.#seen = 0;
      this.#state = byte === 0x75 ? 'hex' : 'string';
      return byte === 0x75 || ESCAPES.has(byte);
    }
    const lower = byte | 0x20;
    if (++this.#seen === 4) this.#state = 'string';
    return (byte >= ZERO && byte <= NINE) || (lower >= 0x61 && lower <= 0x66);
  }

  #readNumber(bytes: Uint8Array, start: number): number {
    let at = start;
    while (at < bytes.length && this.#number.take(bytes[at] as number)) at++;
    if (at > start) this.handler.lexeme(bytes, start, at);
    if (at < bytes.length) this.#endNumber();
    return at;
  }

  #endNumber(): void {
    if (!this.#number.isComplete) {
      this.#fail('a number is incomplete');
      return;
    }
    this.#state = 'after';
    this.handler.lexemeEnd(false);
  }

  #readLiteral(bytes: Uint8Array, start: number): number {
    for (let at = start; at < bytes.length; at++) {
      if (bytes[at] !== this.#literal[this.#seen++]) return this.#fail('there is an unknown word');
      if (this.#seen === this.#literal.length) return this.#endLexeme(bytes, start, at + 1, 'after');
    }
    this.handler.lexeme(bytes, start, bytes.length);
    return bytes.length;
  }

  #endLexeme(bytes: Uint8Array, start: number, end: number, next: State): number {
    this.#state = next;
    this.handler.lexeme(bytes, start, end);
    this.handler.lexemeEnd(next === 'colon');
    return end;
  }

  #fail(reason: string): number {
    this.malformed = reason;
    return Number.POSITIVE_INFINITY;
  }
}

function byFirstByte(...words: string[]): ReadonlyMap<number, Uint8Array> {
  return new Map(words.map((word) => [word.charCodeAt(0), bytesOfLatin1(word)]));
}
