const encoder = /* @__PURE__ */ new TextEncoder();

/** Whether the text takes at most `max` bytes in UTF-8. */
export function fitsIn(text: string, max: number): boolean {
  // A character of JavaScript's is one to three bytes: most texts need not be encoded.
  if (text.length * 3 <= max) return true;
  return text.length <= max && encoder.encode(text).length <= max;
}
