import { tmpdir } from 'node:os';
import { BodyError } from 'headgate/http';
import { openTemporaryFile, type TemporaryFile } from './temporary-file.ts';

const BLOCK_BYTES = 65_536;
const SMALLEST_BLOCK_BYTES = 1_024;

/** Stores bytes in order: in blocks of memory, past a bound in a file. */
export class Storage {
  /** All of them are full, except the last one. */
  #blocks: Uint8Array[] = [];
  /** How much of the last block is used. */
  #used = 0;
  #bytes = 0;
  #file: TemporaryFile | undefined;

  /**
   * @param memoryBytes largest content that stays in memory, in bytes
   * @param directory folder for the file; the system's for temporary files by default
   */
  constructor(
    private readonly memoryBytes: number,
    private readonly directory: string | undefined,
  ) {}

  get isOnDisk(): boolean {
    return this.#file !== undefined;
  }

  /**
   * Copies the chunk, because a million chunks of one byte must not cost a million objects. Returns a promise if it
   * writes to the file, which rejects with a `BodyError` (503) if it cannot write.
   */
  append(chunk: Uint8Array): Promise<void> | undefined {
    for (let at = 0; at < chunk.length; ) {
      const block = this.#roomFor(chunk.length - at);
      const piece = chunk.subarray(at, at + block.length - this.#used);
      block.set(piece, this.#used);
      this.#used += piece.length;
      at += piece.length;
    }
    this.#bytes += chunk.length;
    const bound = this.#file === undefined ? this.memoryBytes : BLOCK_BYTES - 1;
    return this.#bytes > bound ? this.#write() : undefined;
  }

  /** Call after the last chunk. */
  async flush(): Promise<void> {
    if (this.#file !== undefined) await this.#write();
  }

  /** Everything, if it is in memory. Valid until `close`. Only after `flush`. */
  get bytes(): Uint8Array | undefined {
    if (this.#file !== undefined) return undefined;
    const contents = this.#contents();
    return contents.length === 1 ? contents[0] : Buffer.concat(contents);
  }

  /** Reads everything, in copies, because the reader of a stream may write into its chunks. Only after `flush`. */
  async *read(size: number): AsyncGenerator<Uint8Array> {
    if (this.#file === undefined) {
      for (const block of this.#contents()) yield Buffer.from(block);
      return;
    }
    for (let at = 0; at < size; ) {
      const block = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, size - at));
      const length = await this.#file.readInto(block, at);
      if (length === 0) throw new BodyError(503, 'no_storage', 'The stored body is shorter than expected.');
      yield block.subarray(0, length);
      at += length;
    }
  }

  /** Later calls do nothing. */
  async close(): Promise<void> {
    this.#clear();
    await this.#file?.close();
  }

  /** A block with some room. A small body gets a small block. */
  #roomFor(bytes: number): Uint8Array {
    const last = this.#blocks.at(-1);
    if (last !== undefined && this.#used < last.length) return last;
    // A small one is a part of Node's pool: an array of its own costs as much as the rest of a small body's reading. Only
    // the bytes that were written are read.
    const block = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, Math.max(SMALLEST_BLOCK_BYTES, bytes, this.#bytes)));
    this.#blocks.push(block);
    this.#used = 0;
    return block;
  }

  #contents(): readonly Uint8Array[] {
    return this.#blocks.map((block, i) => (i === this.#blocks.length - 1 ? block.subarray(0, this.#used) : block));
  }

  async #write(): Promise<void> {
    this.#file ??= openTemporaryFile(this.directory ?? tmpdir());
    const contents = this.#contents();
    this.#clear();
    for (const content of contents) await this.#file.append(content);
  }

  #clear(): void {
    this.#blocks = [];
    this.#used = 0;
    this.#bytes = 0;
  }
}
