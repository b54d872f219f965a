import { hexValue } from './hex.ts';

/** Receives the pairs of a form in order, one decoded byte at a time. */
export interface FormHandler {
  nameByte(byte: number): void;
  valueByte(byte: number): void;
  /** A percent sign does not begin an escape. It follows as a plain byte. */
  badEscape(inValue: boolean): void;
  /** The next byte is a `;` that is not escaped. Some servers begin another pair there. */
  bareSemicolon?(inValue: boolean): void;
  pairEnd(pair: { readonly hasEquals: boolean; readonly isEmpty: boolean }): void;
}

const [PERCENT, AMPERSAND, PLUS, SEMICOLON, EQUALS] = [0x25, 0x26, 0x2b, 0x3b, 0x3d];

/**
 * Reads `application/x-www-form-urlencoded` while it arrives. It decodes to bytes: as text, `%ff` and `%fe` would be
 * the same.
 */
export class FormParser {
  #hasEquals = false;
  #isEmpty = true;
  /** How many bytes of an incomplete escape were read, percent sign included, and its first digit. */
  #escapeLength = 0;
  #digit = 0;

  constructor(private readonly handler: FormHandler) {}

  write(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) this.#take(bytes[i] as number);
  }

  end(): void {
    this.#endBadEscape();
    this.#endPair();
  }

  #take(byte: number): void {
    if (this.#escapeLength > 0) {
      const value = hexValue(byte);
      if (value !== -1) {
        if (++this.#escapeLength === 2) this.#digit = byte;
        else {
          this.#escapeLength = 0;
          this.#emit(hexValue(this.#digit) * 16 + value);
        }
        return;
      }
      this.#endBadEscape();
    }
    if (byte === AMPERSAND) this.#endPair();
    else this.#takePlain(byte);
  }

  #takePlain(byte: number): void {
    this.#isEmpty = false;
    if (byte === PERCENT) this.#escapeLength = 1;
    else if (byte === EQUALS && !this.#hasEquals) this.#hasEquals = true;
    else {
      if (byte === SEMICOLON) this.handler.bareSemicolon?.(this.#hasEquals);
      this.#emit(byte === PLUS ? 0x20 : byte);
    }
  }

  #endBadEscape(): void {
    const length = this.#escapeLength;
    if (length === 0) return;
    this.#escapeLength = 0;
    this.handler.badEscape(this.#hasEquals);
    this.#emit(PERCENT);
    if (length === 2) this.#emit(this.#digit);
  }

  #emit(byte: number): void {
    if (this.#hasEquals) this.handler.valueByte(byte);
    else this.handler.nameByte(byte);
  }

  #endPair(): void {
    this.handler.pairEnd({ hasEquals: this.#hasEquals, isEmpty: this.#isEmpty });
    this.#hasEquals = false;
    this.#isEmpty = true;
  }
}
