import { aborted, alreadyRead, BodySize, IdleTimer } from '../../http/body-limits.ts';
import type { BodyLimits } from '../shared/request.ts';
import { isGone, type NodeRequest, streamOf } from './http.ts';

/** The default advice of the error. */
const USUAL_REMEDY = 'mount the gate, or readAhead(), before anything that reads it';

// On the request itself, as other marks are: a WeakMap entry per request is work for the garbage collector.
const REMEDY = Symbol('headgate.remedy');

interface Marked {
  [REMEDY]?: string;
}

/** Replaces the usual advice of the error if something else read this body before the gate. */
export function adviseIfRead(request: NodeRequest & Marked, remedy: string): void {
  request[REMEDY] = remedy;
}

/**
 * Reads the body of a request to its end and puts it back, so that the next reader finds it untouched. If that fails,
 * the rest of the body is read and discarded: the client must still get its answer, and its connection can be used
 * again.
 * @throws BodyError `too_large` (413), `aborted` (400), `stalled` (408), `already_read` (500)
 */
export function readAndPutBack(request: NodeRequest & Marked, { maxBytes, idleMs }: BodyLimits): Promise<Uint8Array[]> {
  return new Promise((resolve, reject) => {
    const remedy = request[REMEDY] ?? USUAL_REMEDY;
    const chunks: Uint8Array[] = [];
    const size = new BodySize(maxBytes);
    const idle = new IdleTimer(idleMs, (error) => fail(error));
    let isOver = false;
    const isComplete = watchEnd(request);
    const isClosed = (): boolean => request.destroyed || isGone(request);
    const stop = (): void => {
      isOver = true;
      idle.stop();
      request.off('readable', onReadable).off('close', onClose);
    };
    const fail = (error: unknown): void => {
      stop();
      // The listener for errors stays: a later error must not end the process.
      if (!isClosed()) request.resume();
      reject(error);
    };
    const done = (): void => {
      stop();
      request.off('error', onError);
      if (size.bytes > 0) request.unshift(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size.bytes));
      resolve(chunks);
    };
    const onReadable = (): void => {
      idle.stop();
      try {
        // Reading an empty buffer at the end would make the stream emit `end` before anything listens for it.
        while (request.readableLength > 0) {
          const chunk: unknown = request.read();
          if (!(chunk instanceof Uint8Array)) throw alreadyRead(remedy);
          size.add(chunk.length);
          chunks.push(chunk);
        }
        if (isComplete()) done();
        else idle.restart();
      } catch (error) {
        fail(error);
      }
    };
    const onError = (error: unknown): void => fail(aborted(error));
    const onClose = (): void => fail(aborted(request.errored));
    if (request.readableDidRead || request.readableFlowing === true || request.readableEnded) {
      reject(alreadyRead(remedy));
      return;
    }
    try {
      if (isClosed()) throw aborted(request.errored);
      size.expect(request.headers['content-length']);
    } catch (error) {
      return fail(error);
    }
    request.on('error', onError).on('close', onClose);
    // By the next turn the parser saw the end of an empty body. A listener added before that would make the stream
    // emit `end`, and the next reader would wait for it forever.
    process.nextTick(() => {
      if (isOver) return;
      if (isComplete() && request.readableLength === 0) return done();
      idle.restart();
      request.on('readable', onReadable);
      if (request.readableLength > 0) onReadable();
    });
  });
}

/** Makes a check for the end of the body. HTTP/2 calls a request complete only when it was read, or is gone. */
function watchEnd(request: NodeRequest): () => boolean {
  const stream = streamOf(request);
  if (stream === undefined) return () => request.complete ?? hasEnded(request);
  let isComplete = stream.endAfterHeaders;
  // Before the request's own listener, which makes the request emit `end`. Node also ends a body that its client broke
  // off.
  stream.prependOnceListener('end', () => {
    isComplete = !stream.aborted;
  });
  return () => isComplete;
}

/** For a request that no parser made, as by Fastify's `inject()`: it is a plain stream without `complete`. */
function hasEnded(request: object): boolean {
  // No public property of Node shows an end that was pushed but not read.
  const { _readableState: state } = request as { readonly _readableState?: { readonly ended?: boolean } };
  return state?.ended === true;
}
