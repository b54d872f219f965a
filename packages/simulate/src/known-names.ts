import type { Names } from './line.ts';
import type { LineCursor } from './line-cursor.ts';

interface KnownName {
  readonly bytes: Uint8Array;
  readonly name: string;
}

/** A power of two. A name that has the place of another one takes it. */
const PLACES = 65_536;
const MAX_BYTES = 64;

/** Finds names by their bytes, because the text of a name that is known need not be made again. */
export class KnownNames {
  readonly #places = new Array<KnownName | undefined>(PLACES).fill(undefined);
  readonly #names: Names;

  constructor(names: Names) {
    this.#names = names;
  }

  /** @param hash of the bytes */
  get(lines: LineCursor, from: number, end: number, hash: number): string {
    const { bytes } = lines;
    const place = (hash ^ (hash >>> 16)) & (PLACES - 1);
    const known = this.#places[place];
    if (known !== undefined && known.bytes.length === end - from && startsWith(bytes, from, known.bytes))
      return known.name;
    const name = this.#names.get(lines.slice(from, end));
    if (end - from <= MAX_BYTES) this.#places[place] = { bytes: bytes.slice(from, end), name };
    return name;
  }
}

/** Whether `start` is at a place of `bytes`. */
export function startsWith(bytes: Uint8Array, from: number, start: Uint8Array): boolean {
  const { length } = start;
  if (from + length > bytes.length) return false;
  for (let i = 0; i < length; i++) if (bytes[from + i] !== start[i]) return false;
  return true;
}
