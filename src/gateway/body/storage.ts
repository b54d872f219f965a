import { BodyError } from '../../http/body-error.ts';
import { openTemporaryFile, type TemporaryFile } from './temporary-file.ts';

const BLOCK_BYTES = 65_536;
const SMALLEST_BLOCK_BYTES = 1_024;

/** Bytes in the order in which they came: in blocks of memory, past a bound in a file. */
export class Storage {
  /** All full but the last one. */
  #blocks: Uint8Array[] = [];
  /** How much of the last block is used. */
  #used = 0;
  #held = 0;
  #file: TemporaryFile | undefined;

  /**
   * @param memoryBytes most that is held in memory, in bytes
   * @param directory for the file
   */
  constructor(
    private readonly memoryBytes: number,
    private readonly directory: string,
  ) {}

  get isOnDisk(): boolean {
    return this.#file !== undefined;
  }

  /**
   * Copies what it takes: a million chunks of one byte must not cost a million objects. Returns a promise where there is something to wait for;
   * it throws a `BodyError` (503) where there is no room.
   */
  append(chunk: Uint8Array): Promise<void> | undefined {
    for (let at = 0; at < chunk.length; ) {
      const block = this.#roomFor(chunk.length - at);
      const piece = chunk.subarray(at, at + block.length - this.#used);
      block.set(piece, this.#used);
      this.#used += piece.length;
      at += piece.length;
    }
    this.#held += chunk.length;
    const bound = this.#file === undefined ? this.memoryBytes : BLOCK_BYTES - 1;
    return this.#held > bound ? this.#write() : undefined;
  }

  /** Nothing more comes. */
  async flush(): Promise<void> {
    if (this.#file !== undefined) await this.#write();
  }

  /** Everything, in copies: whoever reads a stream may write into what it got. After `flush`. */
  async *read(size: number): AsyncGenerator<Uint8Array> {
    if (this.#file === undefined) {
      for (const block of this.#contents()) yield Buffer.from(block);
      return;
    }
    for (let at = 0; at < size; ) {
      const block = Buffer.allocUnsafe(Math.min(BLOCK_BYTES, size - at));
      const length = await this.#file.readInto(block, at);
      if (length === 0) throw new BodyError(503, 'no_storage', 'The stored body is shorter than it was.');
      yield block.subarray(0, length);
      at += length;
    }
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#forget();
    await this.#file?.close();
  }

  /** The last block, with some room. A small body costs a small block. */
  #roomFor(bytes: number): Uint8Array {
    const last = this.#blocks.at(-1);
    if (last !== undefined && this.#used < last.length) return last;
    const block = new Uint8Array(Math.min(BLOCK_BYTES, Math.max(SMALLEST_BLOCK_BYTES, bytes, this.#held)));
    this.#blocks.push(block);
    this.#used = 0;
    return block;
  }

  #contents(): readonly Uint8Array[] {
    return this.#blocks.map((block, i) => (i === this.#blocks.length - 1 ? block.subarray(0, this.#used) : block));
  }

  async #write(): Promise<void> {
    this.#file ??= openTemporaryFile(this.directory);
    const contents = this.#contents();
    this.#forget();
    for (const content of contents) await this.#file.append(content);
  }

  #forget(): void {
    this.#blocks = [];
    this.#used = 0;
    this.#held = 0;
  }
}
