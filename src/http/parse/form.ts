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
  /** Bytes of an incomplete escape, percent sign included. */
  readonly #escape: number[] = [];

  constructor(private readonly handler: FormHandler) {}

  write(bytes: Uint8Array): void {
    for (let i = 0; i < bytes.length; i++) this.#take(bytes[i] as number);
  }

  end(): void {
    this.#endBadEscape();
    this.#endPair();
  }

  #take(byte: number): void {
    const pending = this.#escape;
    if (pending.length > 0) {
      if (hexValue(byte) !== -1) {
        pending.push(byte);
        if (pending.length < 3) return;
        const decoded = hexValue(pending[1] as number) * 16 + hexValue(pending[2] as number);
        pending.length = 0;
        this.#emit(decoded);
        return;
      }
      this.#endBadEscape();
    }
    if (byte === AMPERSAND) this.#endPair();
    else this.#takePlain(byte);
  }

  #takePlain(byte: number): void {
    this.#isEmpty = false;
    if (byte === PERCENT) this.#escape.push(byte);
    else if (byte === EQUALS && !this.#hasEquals) this.#hasEquals = true;
    else {
      if (byte === SEMICOLON) this.handler.bareSemicolon?.(this.#hasEquals);
      this.#emit(byte === PLUS ? 0x20 : byte);
    }
  }

  #endBadEscape(): void {
    if (this.#escape.length === 0) return;
    const bytes = this.#escape.splice(0);
    this.handler.badEscape(this.#hasEquals);
    for (const byte of bytes) this.#emit(byte);
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

/** Returns -1 if the byte is not a hexadecimal digit. */
function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
