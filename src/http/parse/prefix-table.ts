/** For every prefix of a pattern of at most 255 bytes, the length of its longest proper prefix that is also its end (Knuth, Morris, Pratt). */
export function prefixTable(pattern: Uint8Array): Uint8Array {
  const borders = new Uint8Array(pattern.length);
  let length = 0;
  for (let i = 1; i < pattern.length; i++) {
    while (length > 0 && pattern[i] !== pattern[length]) length = borders[length - 1] as number;
    if (pattern[i] === pattern[length]) length++;
    borders[i] = length;
  }
  return borders;
}
