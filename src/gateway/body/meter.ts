import { Transform, type TransformCallback } from 'node:stream';

/** More came than a body may have. */
export class BodyTooLargeError extends Error {
  constructor() {
    super('the body is larger than maxBodyBytes');
  }
}

/** Passes a body through, counts it, and breaks off where it is too large: a chunked body says its length only by ending. */
export class BodyMeter extends Transform {
  #bytes = 0;

  /**
   * @param maxBytes bound
   * @param onProgress called for every chunk
   */
  constructor(
    private readonly maxBytes: number,
    private readonly onProgress: () => void,
  ) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.maxBytes) {
      done(new BodyTooLargeError());
      return;
    }
    this.onProgress();
    done(null, chunk);
  }
}
