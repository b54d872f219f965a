const encoder = /* @__PURE__ */ new TextEncoder();

/** Whether the text takes at most `maxBytes` in UTF-8. */
export function fitsInBytes(text: string, maxBytes: number): boolean {
  // One UTF-16 unit of a JavaScript string takes one to three bytes, so most texts need not be encoded.
  if (text.length * 3 <= maxBytes) return true;
  return text.length <= maxBytes && encoder.encode(text).length <= maxBytes;
}
