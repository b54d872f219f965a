/**
 * The failure table of the algorithm of Knuth, Morris and Pratt, which finds a pattern in linear time, whatever the
 * pattern. It contains, for every prefix of the pattern, the length of its longest proper prefix that is also its
 * suffix.
 * @param pattern at most 255 bytes
 */
export function failureTable(pattern: Uint8Array): Uint8Array {
  const table = new Uint8Array(pattern.length);
  for (let i = 1, length = 0; i < pattern.length; i++) {
    length = nextMatch(pattern, table, length, pattern[i] as number);
    table[i] = length;
  }
  return table;
}

/**
 * How many bytes of the pattern match the end of the text after one more byte.
 * @param matched how many did before it; less than the pattern's length
 */
export function nextMatch(pattern: Uint8Array, table: Uint8Array, matched: number, byte: number): number {
  let length = matched;
  while (length > 0 && byte !== pattern[length]) length = table[length - 1] as number;
  return byte === pattern[length] ? length + 1 : length;
}
