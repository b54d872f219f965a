import { HeadgateError } from 'headgate';
import { LineCursor } from './line-cursor.ts';
import type { TraceFigures } from './trace.ts';

/** Text or bytes, whole or in pieces. Bytes may be compressed by gzip. */
export type TraceSource = string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

/** Longest line that is read, in bytes. */
export const MAX_LINE = 65_536;
/** Longer pieces are cut, so that the text of a source that is in memory is not there a second time. */
const MAX_PIECE = 262_144;
/** At the end of a text: the first of the two units of a character. */
const HALF = /[\ud800-\udbff]$/;
const LINE_FEED = 10;
const GZIP = [0x1f, 0x8b];
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** The source cannot be read. */
export class TraceError extends HeadgateError {
  override readonly name = 'TraceError';

  constructor(reason: string, options?: ErrorOptions) {
    super('unreadable_trace', `trace: ${reason}`, options);
  }
}

/**
 * Returns the lines of a source: at a time, all lines that a piece of it completes. A line longer than
 * {@link MAX_LINE} is cut, but stays longer than this bound.
 * @throws TraceError
 */
export async function* linesOf(source: TraceSource, figures: TraceFigures): AsyncGenerator<LineCursor> {
  const splitter = new LineSplitter();
  for await (const piece of withoutMark(await decompressed(bytesOf(source, figures)))) {
    const lines = splitter.add(piece);
    if (lines !== undefined) yield lines;
  }
  yield splitter.end();
}

/** Cuts bytes into whole lines, whatever their pieces are. */
class LineSplitter {
  /** The beginning of a line whose end is still to come. */
  #rest: Uint8Array[] = [];
  #restLength = 0;

  add(piece: Uint8Array): LineCursor | undefined {
    const end = piece.lastIndexOf(LINE_FEED) + 1;
    if (end === 0) {
      this.#store(piece);
      return undefined;
    }
    const from = this.#restLength > MAX_LINE ? piece.indexOf(LINE_FEED) : 0;
    const lines = new LineCursor(joined([...this.#rest, piece.subarray(from, end)]));
    this.#rest = [];
    this.#restLength = 0;
    this.#store(piece.subarray(end));
    return lines;
  }

  end(): LineCursor {
    return new LineCursor(joined(this.#rest));
  }

  /** Copies, because the source may use its buffer again. */
  #store(bytes: Uint8Array): void {
    const stored = bytes.slice(0, MAX_LINE + 1 - this.#restLength);
    if (stored.length === 0) return;
    this.#rest.push(stored);
    this.#restLength += stored.length;
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first, second] = parts;
  if (first !== undefined && second === undefined) return first;
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The source as bytes, in pieces that are not long. */
async function* bytesOf(source: TraceSource, figures: TraceFigures): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const encoder = new TextEncoder();
  // The first half of a character whose second half is in the next text.
  let half = '';
  const whole = typeof source === 'string' || source instanceof Uint8Array ? [source] : source;
  for await (const piece of whole) {
    if (typeof piece !== 'string' && !(piece instanceof Uint8Array))
      throw new TraceError('its pieces must be strings or Uint8Arrays');
    figures.size += piece.length;
    for (let from = 0; from < piece.length; from += MAX_PIECE) {
      const end = Math.min(piece.length, from + MAX_PIECE);
      if (typeof piece === 'string') {
        const text = half + piece.slice(from, end);
        half = HALF.exec(text)?.[0] ?? '';
        yield encoder.encode(text.slice(0, text.length - half.length));
      } else {
        // A Buffer becomes a Uint8Array, because a Buffer's `slice` does not copy.
        yield new Uint8Array(piece.buffer as ArrayBuffer, piece.byteOffset + from, end - from);
      }
    }
  }
  if (half !== '') yield encoder.encode(half);
}

/** The same source; decompressed if it begins as gzip does. */
async function decompressed(source: AsyncGenerator<Uint8Array<ArrayBuffer>>): Promise<AsyncGenerator<Uint8Array>> {
  const { head, whole } = await peeked(source, GZIP.length);
  return isStartOf(GZIP, head) ? gunzipped(whole) : whole;
}

async function* withoutMark(source: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { head, whole } = await peeked(source, BYTE_ORDER_MARK.length);
  let skipped = isStartOf(BYTE_ORDER_MARK, head) ? BYTE_ORDER_MARK.length : 0;
  for await (const piece of whole) {
    yield piece.subarray(skipped);
    skipped = Math.max(0, skipped - piece.length);
  }
}

/** Reads the first bytes of a source ahead. */
async function peeked<Bytes extends Uint8Array>(
  source: AsyncGenerator<Bytes>,
  count: number,
): Promise<{ readonly head: readonly number[]; readonly whole: AsyncGenerator<Bytes> }> {
  const pieces: Bytes[] = [];
  const head: number[] = [];
  while (head.length < count) {
    const { done, value } = await source.next();
    if (done) break;
    pieces.push(value);
    head.push(...value.subarray(0, count - head.length));
  }
  return { head, whole: chained(pieces, source) };
}

function isStartOf(bytes: readonly number[], head: readonly number[]): boolean {
  return bytes.every((byte, i) => head[i] === byte);
}

async function* chained<Piece>(first: readonly Piece[], rest: AsyncGenerator<Piece>): AsyncGenerator<Piece> {
  yield* first;
  yield* rest;
}

async function* gunzipped(source: AsyncGenerator<Uint8Array<ArrayBuffer>>): AsyncGenerator<Uint8Array> {
  const gunzip = new DecompressionStream('gzip');
  const writer = gunzip.writable.getWriter();
  const reader = gunzip.readable.getReader();
  const written = write(source, writer);
  // The reader sees the same failure.
  written.catch(() => {});
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      yield value as Uint8Array;
    }
    await written;
  } catch (error) {
    throw error instanceof TraceError ? error : new TraceError('it is not whole: gzip says so', { cause: error });
  } finally {
    await reader.cancel().catch(() => {});
  }
}

async function write(
  source: AsyncGenerator<Uint8Array<ArrayBuffer>>,
  writer: ReturnType<DecompressionStream['writable']['getWriter']>,
): Promise<void> {
  try {
    for await (const piece of source) {
      await writer.ready;
      await writer.write(piece);
    }
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(() => {});
    throw error;
  }
}
