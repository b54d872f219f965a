import { BodyError } from '../body-error.ts';
import { indexOf } from '../platform.ts';
import { failureTable, nextMatch } from './failure-table.ts';
import { type PartHeader, parsePartHeaders } from './part-headers.ts';

/** More parts than this are refused, so that a body cannot make memory grow. */
const MAX_PARTS = 1_000;
/** The same for the headers of one part. */
const MAX_PART_HEADER_BYTES = 16_384;
/** Most spaces and tabs after a boundary that count as padding (RFC 2046, section 5.1.1). */
const MAX_PADDING = 64;
/** Longest piece that is searched at a time, in bytes: memory stays small however large the chunks are. */
const MAX_PIECE = 65_536;

const [TAB, LF, CR, SPACE, DASH] = [9, 10, 13, 32, 45];

/** Receives the parts of a body in order. Bytes are views, valid only during the call. */
export interface MultipartHandler {
  part(headers: readonly PartHeader[]): void;
  /** A piece of the part's content, cut anywhere. */
  content(bytes: Uint8Array): void;
  partEnd(): void;
  /** A piece of the preamble or the epilogue, which belong to no part. */
  outside(bytes: Uint8Array): void;
}

/** What the bytes after the characters of a boundary make of it; 'unknown' until more arrived. */
type DelimiterEnd = { readonly kind: 'open' | 'close'; readonly next: number } | { readonly kind: 'text' | 'unknown' };

/**
 * Splits a multipart body into its parts while it arrives, in constant memory. It is strict (RFC 2046): unterminated
 * bodies and malformed headers are errors, nothing is skipped, shortened or decoded, and any chunking of the same bytes
 * gives the same parts.
 *
 * None of the maintained parsers does all of that. @remix-run/multipart-parser buffers whole parts. @fastify/busboy and
 * busboy silently drop malformed headers, so two different bodies would look the same. The parts of multipasta depend
 * on the chunks, and formidable costs three times what hashing does. The tests compare this parser with them.
 */
export class MultipartParser {
  /**
   * Whether the characters of the boundary appear where a lenient parser may see a delimiter and a strict one does not:
   * after a bare line feed, in the middle of a line, followed by other text, or after the end.
   */
  ambiguous = false;
  #state: 'preamble' | 'headers' | 'content' | 'epilogue' = 'preamble';
  readonly #delimiter: Uint8Array;
  readonly #failureTable: Uint8Array;
  /** The end of the bytes so far, if it may be the beginning of a delimiter. */
  #carry: Uint8Array | undefined;
  #scratch = new Uint8Array(0);
  #atStart = true;
  #parts = 0;
  #head = new Uint8Array(0);
  #headLength = 0;

  /** @param boundary visible ASCII, without CR */
  constructor(
    boundary: string,
    private readonly handler: MultipartHandler,
  ) {
    this.#delimiter = new TextEncoder().encode(`--${boundary}`);
    this.#failureTable = failureTable(this.#delimiter);
  }

  write(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; at += MAX_PIECE) this.#writePiece(chunk.subarray(at, at + MAX_PIECE));
  }

  #writePiece(piece: Uint8Array): void {
    const bytes = this.#carry === undefined ? piece : this.#joined(this.#carry, piece);
    this.#carry = undefined;
    let at = 0;
    while (at < bytes.length) at = this.#state === 'headers' ? this.#readHeaders(bytes, at) : this.#readText(bytes, at);
  }

  /** @throws BodyError `malformed_multipart` (422) if the last boundary is missing */
  end(): void {
    if (this.#state !== 'epilogue') throw malformed('The multipart body has no end: its last boundary is missing.');
    if (this.#carry !== undefined) this.handler.outside(this.#carry);
    this.#carry = undefined;
  }

  /** Reads up to a delimiter or to the end of `bytes`. Returns the new position. */
  #readText(bytes: Uint8Array, start: number): number {
    let from = start;
    for (;;) {
      const position = indexOf(bytes, this.#delimiter, from);
      if (position === -1) break;
      const lineStart = this.#lineStart(bytes, start, position);
      const end = lineStart === undefined ? TEXT : readDelimiterEnd(bytes, position + this.#delimiter.length);
      if (lineStart !== undefined && end.kind === 'unknown') return this.#passUpTo(bytes, start, lineStart);
      if (lineStart !== undefined && 'next' in end) {
        this.#emit(bytes, start, lineStart);
        this.#endText(end.kind);
        // Not every parser accepts padding.
        if (end.next - position - this.#delimiter.length > 2) this.ambiguous = true;
        return end.next;
      }
      this.ambiguous = true;
      from = position + this.#delimiter.length;
    }
    return this.#passUpTo(bytes, start, bytes.length - this.#partialDelimiterLength(bytes, start, from));
  }

  /** Start of the line break before a boundary that begins a line; undefined if the boundary does not begin one. */
  #lineStart(bytes: Uint8Array, start: number, position: number): number | undefined {
    if (this.#state === 'epilogue') return undefined;
    if (this.#atStart && position === start) return position;
    const lineBreak = position - 2;
    return lineBreak >= start && bytes[lineBreak] === CR && bytes[lineBreak + 1] === LF ? lineBreak : undefined;
  }

  /** Length of the longest end of `bytes` that may begin a delimiter. At most a delimiter's length is read. */
  #partialDelimiterLength(bytes: Uint8Array, start: number, from: number): number {
    let matched = 0;
    for (let i = Math.max(from, bytes.length - this.#delimiter.length + 1); i < bytes.length; i++) {
      matched = nextMatch(this.#delimiter, this.#failureTable, matched, bytes[i] as number);
    }
    const before = bytes.length - matched;
    if (before - 2 >= start && bytes[before - 2] === CR && bytes[before - 1] === LF) return matched + 2;
    return matched === 0 && before - 1 >= start && bytes[before - 1] === CR ? 1 : matched;
  }

  /** Joins both in memory that is reused: the handler may not keep what it is passed. */
  #joined(carry: Uint8Array, piece: Uint8Array): Uint8Array {
    const length = carry.length + piece.length;
    if (this.#scratch.length < length) this.#scratch = new Uint8Array(length);
    this.#scratch.set(carry);
    this.#scratch.set(piece, carry.length);
    return this.#scratch.subarray(0, length);
  }

  /** Passes the bytes up to `end` to the handler, and carries over the rest. Returns the new position. */
  #passUpTo(bytes: Uint8Array, start: number, end: number): number {
    this.#emit(bytes, start, end);
    // This must be a copy, because the caller may reuse the chunk. A Buffer's `slice` would not copy.
    this.#carry = end < bytes.length ? new Uint8Array(bytes.subarray(end)) : undefined;
    return bytes.length;
  }

  #emit(bytes: Uint8Array, start: number, end: number): void {
    if (end <= start) return;
    this.#atStart = false;
    const text = bytes.subarray(start, end);
    if (this.#state === 'content') this.handler.content(text);
    else this.handler.outside(text);
  }

  #endText(kind: 'open' | 'close'): void {
    this.#atStart = false;
    if (this.#state === 'content') this.handler.partEnd();
    this.#state = kind === 'open' ? 'headers' : 'epilogue';
    if (kind === 'open' && ++this.#parts > MAX_PARTS) {
      throw new BodyError(422, 'too_many_parts', `The multipart body has more than ${MAX_PARTS} parts.`);
    }
    this.#headLength = 0;
  }

  /** Collects the headers of a part up to the empty line after them. Returns the new position. */
  #readHeaders(bytes: Uint8Array, start: number): number {
    if (this.#head.length === 0) this.#head = new Uint8Array(MAX_PART_HEADER_BYTES + 4);
    const head = this.#head;
    for (let at = start; at < bytes.length; at++) {
      if (this.#headLength === head.length) {
        throw new BodyError(
          422,
          'part_headers_too_large',
          `The headers of a part have more than ${MAX_PART_HEADER_BYTES} bytes.`,
        );
      }
      head[this.#headLength++] = bytes[at] as number;
      if (bytes[at] === LF && this.#isHeadComplete()) {
        this.#state = 'content';
        this.handler.part(parsePartHeaders(head.subarray(0, this.#headLength - 2)));
        return at + 1;
      }
    }
    return bytes.length;
  }

  #isHeadComplete(): boolean {
    const [head, length] = [this.#head, this.#headLength];
    if (length < 2 || head[length - 2] !== CR) return false;
    return length === 2 || (length >= 4 && head[length - 3] === LF && head[length - 4] === CR);
  }
}

const TEXT: DelimiterEnd = { kind: 'text' };
const UNKNOWN: DelimiterEnd = { kind: 'unknown' };

function readDelimiterEnd(bytes: Uint8Array, start: number): DelimiterEnd {
  if (bytes[start] === DASH) {
    if (start + 1 === bytes.length) return UNKNOWN;
    return bytes[start + 1] === DASH ? { kind: 'close', next: start + 2 } : TEXT;
  }
  let at = start;
  while (bytes[at] === SPACE || bytes[at] === TAB) if (++at - start > MAX_PADDING) return TEXT;
  if (at === bytes.length) return UNKNOWN;
  if (bytes[at] !== CR) return TEXT;
  if (at + 1 === bytes.length) return UNKNOWN;
  return bytes[at + 1] === LF ? { kind: 'open', next: at + 2 } : TEXT;
}

function malformed(message: string): BodyError {
  return new BodyError(422, 'malformed_multipart', message);
}
