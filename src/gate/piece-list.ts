/** So many pieces stay as they are: most bodies consist of a few, and need no copy. */
const MAX_PIECES = 16;
/** Smaller pieces are copied together, into arrays of this many bytes. */
const BLOCK_BYTES = 4_096;

/**
 * The pieces of a body that wait, in order. Many small pieces are merged, because an array costs some hundred bytes
 * whatever its length.
 */
export class PieceList {
  #pieces: Uint8Array[] = [];
  /** Holds small pieces behind those of `#pieces`. */
  #block: Uint8Array | undefined;
  #blockLength = 0;

  add(piece: Uint8Array): void {
    const isMerged = piece.length < BLOCK_BYTES && this.#pieces.length >= MAX_PIECES;
    if (!isMerged || this.#blockLength + piece.length > BLOCK_BYTES) this.#closeBlock();
    if (!isMerged) this.#pieces.push(piece);
    else {
      this.#block ??= new Uint8Array(BLOCK_BYTES);
      this.#block.set(piece, this.#blockLength);
      this.#blockLength += piece.length;
    }
  }

  /** Removes and returns all pieces. */
  take(): Uint8Array[] {
    this.#closeBlock();
    const pieces = this.#pieces;
    this.#pieces = [];
    return pieces;
  }

  #closeBlock(): void {
    if (this.#block !== undefined) this.#pieces.push(this.#block.subarray(0, this.#blockLength));
    this.#block = undefined;
    this.#blockLength = 0;
  }
}
