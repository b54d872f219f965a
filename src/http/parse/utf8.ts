/** Judges whether bytes are UTF-8 (RFC 3629: no overlong forms, no surrogates) while they come in. */
export class Utf8Check {
  /** Bytes that the present character still needs; 0 between characters. */
  pending = 0;
  #low = 0x80;
  #high = 0xbf;

  /** Whether the bytes so far may still become UTF-8. */
  take(byte: number): boolean {
    if (this.pending > 0) {
      if (byte < this.#low || byte > this.#high) return false;
      this.pending--;
      this.#low = 0x80;
      this.#high = 0xbf;
      return true;
    }
    if (byte < 0x80) return true;
    if (byte < 0xc2 || byte > 0xf4) return false;
    this.pending = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    this.#low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80;
    this.#high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf;
    return true;
  }
}

const DECODER = /* @__PURE__ */ new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** Up to here a loop is faster than the decoder. */
const SHORT = 32;

/** The text, or undefined where the bytes are not UTF-8. A byte order mark stays. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  if (bytes.length <= SHORT) {
    let text = '';
    for (let i = 0; i < bytes.length && (bytes[i] as number) < 0x80; i++)
      text += String.fromCharCode(bytes[i] as number);
    if (text.length === bytes.length) return text;
  }
  try {
    return DECODER.decode(bytes);
  } catch {
    return undefined;
  }
}
