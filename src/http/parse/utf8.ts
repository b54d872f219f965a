/** Checks whether bytes are UTF-8 (RFC 3629: no overlong forms, no surrogates) while they arrive. */
export class Utf8Check {
  /** Bytes that the current character still needs; 0 between characters. */
  pending = 0;
  #low = 0x80;
  #high = 0xbf;

  /** Returns false if the bytes so far cannot be the start of UTF-8 text. */
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
/** Up to this length, in bytes, a loop is faster than the decoder. */
const SHORT = 32;

/** Returns undefined if the bytes are not UTF-8. A byte order mark stays in the text. */
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
