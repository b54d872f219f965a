import { HeadgateError } from '../core/errors.ts';
import type { TraceFigures } from './trace.ts';

/** Text or bytes, whole or in pieces. Bytes may be compressed by gzip. */
export type TraceSource = string | Uint8Array | Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>;

/** Longest line that is read, in characters. */
export const MAX_LINE = 65_536;
const GZIP = [0x1f, 0x8b];

/** The source cannot be read. */
export class TraceError extends HeadgateError {
  override readonly name = 'TraceError';

  constructor(reason: string, options?: ErrorOptions) {
    super('unreadable_trace', `trace: ${reason}`, options);
  }
}

/**
 * Returns the lines of a source, all that a piece of it completes at a time. Undefined is a line that was too long.
 * @throws TraceError
 */
export async function* linesOf(source: TraceSource, figures: TraceFigures): AsyncGenerator<(string | undefined)[]> {
  const splitter = new LineSplitter();
  for await (const text of textOf(pieces(source, figures))) {
    const lines = splitter.add(text);
    if (lines.length > 0) yield lines;
  }
  yield splitter.end();
}

/** Cuts text into lines, whatever its pieces are. */
class LineSplitter {
  #rest = '';
  #isTooLong = false;

  add(text: string): (string | undefined)[] {
    const lines: (string | undefined)[] = [];
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      const line = this.#rest === '' ? text.slice(from, end) : this.#rest + text.slice(0, end);
      lines.push(this.#isTooLong || line.length > MAX_LINE ? undefined : line);
      this.#rest = '';
      this.#isTooLong = false;
      from = end + 1;
    }
    if (!this.#isTooLong) this.#rest += text.slice(from);
    if (this.#rest.length > MAX_LINE) {
      this.#rest = '';
      this.#isTooLong = true;
    }
    return lines;
  }

  end(): (string | undefined)[] {
    if (this.#isTooLong) return [undefined];
    return this.#rest === '' ? [] : [this.#rest];
  }
}

async function* pieces(source: TraceSource, figures: TraceFigures): AsyncGenerator<string | Uint8Array> {
  const whole = typeof source === 'string' || source instanceof Uint8Array ? [source] : source;
  for await (const piece of whole) {
    if (typeof piece !== 'string' && !(piece instanceof Uint8Array))
      throw new TraceError('its pieces must be strings or Uint8Arrays');
    figures.size += piece.length;
    yield piece;
  }
}

async function* textOf(source: AsyncGenerator<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const piece of await decompressed(source)) {
    const text = typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true });
    if (text !== '') yield text;
  }
  const end = decoder.decode();
  if (end !== '') yield end;
}

/** The same source; decompressed if it begins as gzip does. */
async function decompressed(source: AsyncGenerator<string | Uint8Array>): Promise<AsyncGenerator<string | Uint8Array>> {
  const head: (string | Uint8Array)[] = [];
  const magic: number[] = [];
  while (magic.length < GZIP.length) {
    const { done, value } = await source.next();
    if (done) break;
    head.push(value);
    if (typeof value === 'string') break;
    magic.push(...value.subarray(0, GZIP.length - magic.length));
  }
  const whole = joined(head, source);
  return GZIP.every((byte, i) => magic[i] === byte) ? gunzipped(whole) : whole;
}

async function* joined(
  head: readonly (string | Uint8Array)[],
  rest: AsyncGenerator<string | Uint8Array>,
): AsyncGenerator<string | Uint8Array> {
  yield* head;
  yield* rest;
}

async function* gunzipped(source: AsyncGenerator<string | Uint8Array>): AsyncGenerator<Uint8Array> {
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
  source: AsyncGenerator<string | Uint8Array>,
  writer: ReturnType<DecompressionStream['writable']['getWriter']>,
): Promise<void> {
  try {
    for await (const piece of source) {
      await writer.ready;
      await writer.write(
        typeof piece === 'string' ? new TextEncoder().encode(piece) : (piece as Uint8Array<ArrayBuffer>),
      );
    }
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(() => {});
    throw error;
  }
}
