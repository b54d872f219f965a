import type { IncomingMessage } from 'node:http';
import type { Http2ServerRequest } from 'node:http2';
import { BodyError } from '../../http/body-error.ts';

export interface PutBackOptions {
  /** Bound of the body, in bytes; all of it is in memory at once. */
  readonly maxBytes: number;
  /**
   * Longest wait for the next piece, in milliseconds.
   * @default 30_000
   */
  readonly idleMs?: number | undefined;
  /** Gets each piece as it comes. What it throws ends the reading. */
  readonly observe: (chunk: Uint8Array) => void;
}

/**
 * Reads the body of a request to its end, and puts it back, so that whoever reads the request afterwards finds it untouched. Where that
 * fails, the rest of the body is read and thrown away: the client is still to be answered, and its connection may be used again.
 *
 * @throws BodyError `too_large` (413), `aborted` (400), `stalled` (408), `already_read` (500), and whatever `observe` throws
 */
export function readAndPutBack(request: IncomingMessage | Http2ServerRequest, options: PutBackOptions): Promise<void> {
  const { maxBytes, idleMs = 30_000, observe } = options;
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let size = 0;
    let timer: NodeJS.Timeout | undefined;
    let isOver = false;
    const isComplete = endOf(request);
    const isGone = (): boolean => request.destroyed || ('stream' in request && request.stream.destroyed);
    const stop = (): void => {
      isOver = true;
      clearTimeout(timer);
      request.off('readable', onReadable).off('close', onClose);
    };
    const fail = (error: unknown): void => {
      stop();
      // The listener for errors stays: one that comes later must not end the process.
      if (!isGone()) request.resume();
      reject(error);
    };
    /** @returns whether the body is complete */
    const take = (): boolean => {
      // A read of nothing behind the end would make the stream tell its end, before anybody listens.
      while (request.readableLength > 0) {
        const chunk: unknown = request.read();
        if (!(chunk instanceof Uint8Array)) throw alreadyRead();
        size += chunk.length;
        if (size > maxBytes) throw tooLarge(maxBytes);
        observe(chunk);
        chunks.push(chunk);
      }
      return isComplete();
    };
    const done = (): void => {
      stop();
      request.off('error', onError);
      if (size > 0) request.unshift(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size));
      resolve();
    };
    const onReadable = (): void => {
      clearTimeout(timer);
      try {
        if (!take()) {
          timer = setTimeout(() => fail(stalled(idleMs)), idleMs);
          return;
        }
        done();
      } catch (error) {
        fail(error);
      }
    };
    const onError = (error: unknown): void => fail(aborted(error));
    const onClose = (): void => fail(aborted(request.errored));
    if (request.readableDidRead || request.readableFlowing === true || request.readableEnded) {
      reject(alreadyRead());
      return;
    }
    if (isGone()) return fail(aborted(request.errored));
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) return fail(tooLarge(maxBytes));
    request.on('error', onError).on('close', onClose);
    // By the next turn the parser has told the end of a body that is empty. To listen before that would make the stream tell its end, and
    // whoever reads it later would wait for it.
    process.nextTick(() => {
      if (isOver) return;
      if (isComplete() && request.readableLength === 0) return done();
      timer = setTimeout(() => fail(stalled(idleMs)), idleMs);
      request.on('readable', onReadable);
      if (request.readableLength > 0) onReadable();
    });
  });
}

/** Says whether all of a body has come. HTTP/2 calls a request complete only when it was read, or is gone. */
function endOf(request: IncomingMessage | Http2ServerRequest): () => boolean {
  if (!('stream' in request)) return () => request.complete;
  const { stream } = request;
  let isComplete = stream.endAfterHeaders;
  // Before the request itself hears of it, and tells. Of a body that its client broke off Node tells an end too.
  stream.prependOnceListener('end', () => {
    isComplete = !stream.aborted;
  });
  return () => isComplete;
}

function tooLarge(maxBytes: number): BodyError {
  return new BodyError(413, 'too_large', `The body has more than ${maxBytes} bytes.`);
}

function aborted(cause: unknown): BodyError {
  return new BodyError(400, 'aborted', 'The body broke off before its end.', { cause });
}

function stalled(idleMs: number): BodyError {
  return new BodyError(408, 'stalled', `Nothing more of the body came for ${idleMs} ms.`);
}

function alreadyRead(): BodyError {
  return new BodyError(
    500,
    'already_read',
    'The body was read by something else before: mount the gate in front of it.',
  );
}
