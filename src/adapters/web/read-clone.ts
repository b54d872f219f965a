import { BodyError } from '../../http/body-error.ts';

export interface ReadCloneOptions {
  /** Bound of the body, in bytes; all of it is in memory at once. */
  readonly maxBytes: number;
  /**
   * Longest wait for the next piece, in milliseconds.
   * @default 30_000
   */
  readonly idleMs?: number | undefined;
}

/**
 * Reads a copy of a web request's body, so that whoever reads the request afterwards finds it untouched. Where that fails, the rest is read and
 * thrown away: the client is still to be answered. Web APIs only.
 *
 * @throws BodyError `too_large` (413), `aborted` (400), `stalled` (408), `already_read` (500)
 */
export async function readClone(
  request: Request,
  { maxBytes, idleMs = 30_000 }: ReadCloneOptions,
): Promise<Uint8Array[]> {
  // The one thing that says so where a body was parsed by something in front, too.
  if (request.bodyUsed) throw alreadyRead();
  const chunks: Uint8Array[] = [];
  if (request.body === null) return chunks;
  const tooLarge = new BodyError(413, 'too_large', `The body has more than ${maxBytes} bytes.`);
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge;
  const reader = copyOf(request);
  let size = 0;
  for (;;) {
    const { done, value } = await inTime(reader.read(), idleMs).catch((error: unknown) => {
      discard(request, reader);
      throw error;
    });
    if (done) return chunks;
    size += value.length;
    if (size > maxBytes) {
      discard(request, reader);
      throw tooLarge;
    }
    chunks.push(value);
  }
}

function copyOf(request: Request): ReadableStreamDefaultReader<Uint8Array> {
  try {
    return (request.clone().body as ReadableStream<Uint8Array>).getReader();
  } catch {
    // Somebody holds its stream.
    throw alreadyRead();
  }
}

async function inTime<Result>(reading: Promise<Result>, idleMs: number): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = new BodyError(408, 'stalled', `Nothing more of the body came for ${idleMs} ms.`);
    timer = setTimeout(() => reject(error), idleMs);
  });
  const broken = (cause: unknown): never => {
    throw new BodyError(400, 'aborted', 'The body broke off before its end.', { cause });
  };
  try {
    return await Promise.race([reading.catch(broken), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Both halves cancelled would break the connection off, with the answer on it; one half left alone would hold all that the other one reads. So
 * the handler's half is cancelled, and this one read on.
 */
function discard(request: Request, reader: ReadableStreamDefaultReader<Uint8Array>): void {
  const ignore = (): void => {};
  request.body?.cancel().catch(ignore);
  const readOn = (): Promise<void> => reader.read().then(({ done }) => (done ? undefined : readOn()));
  readOn().catch(ignore);
}

function alreadyRead(): BodyError {
  return new BodyError(
    500,
    'already_read',
    'The body was read by something else before: mount the gate in front of it.',
  );
}
