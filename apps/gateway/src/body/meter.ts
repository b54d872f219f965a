import { Transform, type TransformCallback } from 'node:stream';
import { BodySize } from 'headgate/internal';

/**
 * Passes a streamed body through and counts it, because a chunked body does not state its length. Past the bound it
 * fails with a BodyError `too_large` (413), and if it comes in too many tiny pieces with `too_fragmented` (400).
 */
export class BodyMeter extends Transform {
  readonly #size: BodySize;
  readonly #onProgress: () => void;

  /** @param onProgress called for every chunk */
  constructor(maxBytes: number, onProgress: () => void) {
    super();
    this.#size = new BodySize(maxBytes);
    this.#onProgress = onProgress;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      this.#size.add(chunk.length);
    } catch (error) {
      done(error as Error);
      return;
    }
    this.#onProgress();
    done(null, chunk);
  }
}
