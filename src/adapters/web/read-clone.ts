import { aborted, alreadyRead, BodySize, IdleTimer } from '../../http/body-limits.ts';
import type { BodyLimits } from '../shared/request.ts';

type Reader = ReadableStreamDefaultReader<Uint8Array>;

/**
 * Reads a copy of a web request's body, so that the next reader finds the request untouched. If that fails, the rest of
 * the body is read and discarded: the client must still get its answer.
 * @throws BodyError `too_large` (413), `aborted` (400), `stalled` (408), `already_read` (500)
 */
export async function readClone(request: Request, { maxBytes, idleMs }: BodyLimits): Promise<Uint8Array[]> {
  // Checked first: if something in front of the gate parsed the body, this may be the only sign of it.
  if (request.bodyUsed) throw alreadyRead();
  const chunks: Uint8Array[] = [];
  if (request.body === null) return chunks;
  const size = new BodySize(maxBytes);
  size.expect(request.headers.get('content-length'));
  const reader = readerOfClone(request);
  try {
    for (;;) {
      const { done, value } = await readInTime(reader, idleMs);
      if (done) return chunks;
      size.add(value.length);
      chunks.push(value);
    }
  } catch (error) {
    discard(request, reader);
    throw error;
  }
}

function readerOfClone(request: Request): Reader {
  try {
    return (request.clone().body as ReadableStream<Uint8Array>).getReader();
  } catch {
    // Other code locked the stream.
    throw alreadyRead();
  }
}

function readInTime(reader: Reader, idleMs: number): ReturnType<Reader['read']> {
  return new Promise((resolve, reject) => {
    const idle = new IdleTimer(idleMs, reject);
    idle.restart();
    const broken = (cause: unknown): void => reject(aborted(cause));
    reader
      .read()
      .then(resolve, broken)
      .finally(() => idle.stop());
  });
}

/**
 * Cancels the handler's half of the body and reads the other half to its end. If both halves were cancelled, the
 * connection would break and the client would get no answer. If one half were left alone, it would buffer everything
 * that the other one reads.
 */
function discard(request: Request, reader: Reader): void {
  const ignore = (): void => {};
  request.body?.cancel().catch(ignore);
  const readOn = (): Promise<void> => reader.read().then(({ done }) => (done ? undefined : readOn()));
  readOn().catch(ignore);
}
