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

const DECODER = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });
/** Up to this length, in bytes, a loop is faster than the decoder. */
const SHORT = 32;

/** Returns undefined if the bytes are not UTF-8. A byte order mark stays in the text. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  const isShort = bytes.length <= SHORT;
  let text = '';
  let at = 0;
  for (; at < bytes.length && (bytes[at] as number) < 0x80; at++)
    if (isShort) text += String.fromCharCode(bytes[at] as number);
  // Checked here: an error of the decoder would cost more than the decoding.
  const check = new Utf8Check();
  let point = 0;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    const isFirst = check.pending === 0;
    if (!check.take(byte)) return undefined;
    if (!isShort) continue;
    // The first byte of n starts with n+1 bits that are not part of the character.
    point = isFirst ? byte & (0x7f >> (check.pending && check.pending + 1)) : (point << 6) | (byte & 0x3f);
    if (check.pending === 0) text += String.fromCodePoint(point);
  }
  if (check.pending > 0) return undefined;
  return isShort ? text : DECODER.decode(bytes);
}

/**
 * Decodes a JSON string.
 * @param lexeme its bytes as the lexer passed them, quotes included
 */
export function parseJsonString(lexeme: Uint8Array): string {
  const text = decodeUtf8(lexeme) ?? '""';
  return text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1);
}
