import { maxHeaderSize } from 'node:http';

/** The head of a response, without informational ones in front of it. */
export interface ResponseHead {
  readonly status: number;
  readonly reason: string;
  /** Names and values in one flat list, in the order of the message; bytes as Latin-1. */
  readonly fields: string[];
}

/** Receives the parts of a response from a {@link ResponseReader}. */
export interface ResponseListener {
  onHead(head: ResponseHead): void;
  onData(chunk: Buffer): void;
}

/** The upstream's bytes are not HTTP/1, or leave open where the response ends. */
export class UnreadableResponse extends Error {}

const END_OF_HEAD = Buffer.from('\r\n\r\n');
const START = 'HTTP/1.';
const STATUS_LINE = /^HTTP\/1\.([01]) (\d{3})(?: ([\t\x20-\x7e\x80-\xff]*))?$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const LENGTH = /^\d{1,15}$/;
/** A tab behind a length or a coding. Node's parser does not take such a coding for chunked. */
const TAB_IN_FRAMING = /^(?:content-length|transfer-encoding):[^\r\n]*\t *$/im;
/** The size of a chunk, and perhaps extensions, which a gateway ignores: `;name`, `;name=value` or `;name="value"`. */
const CHUNK_SIZE =
  /^([\da-fA-F]{1,13})(?:;[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:=(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+|"(?:[\t\x20!\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?)*$/;
/** Longest line in front of a chunk, in bytes. */
const MAX_SIZE_LINE = 1_024;

/** The next part of the response. */
type State = 'head' | 'sized body' | 'body to the end' | 'chunk size' | 'chunk' | 'end of chunk' | 'trailers' | 'over';

/**
 * Reads one response from the bytes of a connection (RFC 9112). It is strict: two lengths, a transfer coding other than
 * chunked, a line that does not end with CRLF, or a control character makes a response unreadable, because two readers
 * could see two different responses. Informational responses and trailers are checked, and skipped.
 */
export class ResponseReader {
  /** Whether the upstream keeps the connection open after the response. Known when the head was read. */
  keepsAlive = false;
  /** Value of the field `keep-alive`. */
  keepAliveHint: string | undefined;
  /** Bytes came behind the response. The next request would take them for its response. */
  hasMore = false;
  readonly #isHead: boolean;
  readonly #listener: ResponseListener;
  #state: State = 'head';
  /** The beginning of a head or a line whose end is still to come. */
  #text = '';
  /** Bytes that are left of the body or the chunk. */
  #left = 0;
  /** Length of all extensions of chunks so far. */
  #extensions = 0;

  /** @param isHead whether the request was a HEAD: its response is sent without a body */
  constructor(isHead: boolean, listener: ResponseListener) {
    this.#isHead = isHead;
    this.#listener = listener;
  }

  /** Whether the response was read to its end. */
  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** @throws UnreadableResponse */
  read(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      switch (this.#state) {
        case 'head':
          at = this.#readHead(chunk, at);
          break;
        case 'sized body':
        case 'chunk':
          at = this.#readBody(chunk, at);
          break;
        case 'body to the end':
          this.#listener.onData(at === 0 ? chunk : chunk.subarray(at));
          return;
        case 'chunk size':
        case 'end of chunk':
        case 'trailers':
          at = this.#readLine(chunk, at);
          break;
        case 'over':
          this.hasMore = true;
          return;
      }
    }
  }

  /**
   * The upstream sends nothing more.
   * @returns whether the response is whole
   */
  end(): boolean {
    if (this.#state === 'body to the end') this.#state = 'over';
    return this.isOver;
  }

  #readHead(chunk: Buffer, at: number): number {
    if (this.#text === '') {
      const end = chunk.indexOf(END_OF_HEAD, at);
      if (end >= 0 && end - at <= maxHeaderSize) {
        this.#onHead(chunk.toString('latin1', at, end));
        return end + 4;
      }
    }
    const before = this.#text.length;
    this.#text += chunk.toString('latin1', at, Math.min(chunk.length, at + maxHeaderSize + 4));
    const end = this.#text.indexOf('\r\n\r\n', Math.max(0, before - 3));
    if (end > maxHeaderSize || (end === -1 && this.#text.length > maxHeaderSize))
      throw new UnreadableResponse('the head is too long');
    if (end === -1) {
      checkIncomplete(this.#text, before);
      return chunk.length;
    }
    const head = this.#text.slice(0, end);
    this.#text = '';
    this.#onHead(head);
    return at + end + 4 - before;
  }

  #onHead(head: string): void {
    const endOfLine = head.indexOf('\r\n');
    const line = STATUS_LINE.exec(endOfLine === -1 ? head : head.slice(0, endOfLine));
    if (line === null) throw new UnreadableResponse('the status line is malformed');
    const status = Number(line[2]);
    // No request asks for another protocol.
    if (status < 100 || status === 101) throw new UnreadableResponse(`the status is ${status}`);
    const fields = endOfLine === -1 ? [] : fieldsOf(head, endOfLine + 2);
    if (head.includes('\t') && TAB_IN_FRAMING.test(head)) throw new UnreadableResponse('the length is malformed');
    const framing = framingOf(fields);
    const isKept = staysOpen(line[1] === '1', framing);
    if (status < 200) {
      if (!isKept) throw new UnreadableResponse('an informational response ends the connection');
      return;
    }
    this.#frame(status, isKept, framing);
    this.#listener.onHead({ status, reason: line[3] ?? '', fields });
  }

  /** Finds out how the body ends (RFC 9112, section 6.3). */
  #frame(status: number, isKept: boolean, { length, coding, keepAlive }: Framing): void {
    if (coding !== undefined && (coding !== 'chunked' || length !== undefined))
      throw new UnreadableResponse('the end of the response is unclear');
    this.keepAliveHint = keepAlive;
    this.keepsAlive = isKept;
    if (this.#isHead || status === 204 || status === 304) {
      this.#state = 'over';
      // Some upstreams send a body all the same. It would come later, as the response to the next request. The length of
      // a 304 should be the length of the 200 that it replaces, but this reader cannot tell the two cases apart.
      const announcesBody = coding !== undefined || Number(length ?? 0) > 0;
      if (this.#isHead || announcesBody) this.keepsAlive = false;
    } else if (coding !== undefined) this.#state = 'chunk size';
    else if (length === undefined) {
      this.#state = 'body to the end';
      this.keepsAlive = false;
    } else {
      this.#left = Number(length);
      this.#state = this.#left === 0 ? 'over' : 'sized body';
    }
  }

  #readBody(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#left);
    this.#left -= end - at;
    if (this.#left === 0) this.#state = this.#state === 'chunk' ? 'end of chunk' : 'over';
    this.#listener.onData(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
    return end;
  }

  #readLine(chunk: Buffer, at: number): number {
    const end = chunk.indexOf(10, at);
    this.#text += chunk.toString('latin1', at, end === -1 ? chunk.length : end + 1);
    if (this.#text.length > (this.#state === 'trailers' ? maxHeaderSize : MAX_SIZE_LINE))
      throw new UnreadableResponse('a line between chunks is too long');
    if (end === -1) return chunk.length;
    this.#onLine(this.#text);
    return end + 1;
  }

  /** @param text ends with a line feed */
  #onLine(text: string): void {
    if (this.#state === 'trailers') {
      if (!text.endsWith('\r\n')) throw new UnreadableResponse('a trailer ends with a bare line feed');
      // All trailers stay in the text, so that their length is bounded together.
      if (text !== '\r\n' && !text.endsWith('\r\n\r\n')) return;
      const { length, coding } = framingOf(fieldsOf(text.slice(0, -2), 0));
      // A trailer must not say where the body ends (RFC 9110, section 6.5.1).
      if (length !== undefined || coding !== undefined) throw new UnreadableResponse('a trailer is not allowed');
      this.#state = 'over';
    } else if (this.#state === 'end of chunk') {
      if (text !== '\r\n') throw new UnreadableResponse('a chunk is longer than it says');
      this.#state = 'chunk size';
    } else {
      this.#left = this.#sizeIn(text);
      this.#state = this.#left === 0 ? 'trailers' : 'chunk';
    }
    this.#text = '';
  }

  /** The size of the chunk behind this line. */
  #sizeIn(line: string): number {
    const [, digits] = (line.endsWith('\r\n') && CHUNK_SIZE.exec(line.slice(0, -2))) || [];
    if (digits === undefined) throw new UnreadableResponse('the size of a chunk is malformed');
    // Endless extensions between bytes would cost more than the bytes.
    this.#extensions += line.length - 2 - digits.length;
    if (this.#extensions > maxHeaderSize) throw new UnreadableResponse('the extensions of chunks are too long');
    return Number.parseInt(digits, 16);
  }
}

/**
 * Rejects the beginning of a head that cannot become valid. Otherwise the gateway would wait for an end that an upstream
 * of another protocol, or with bare line feeds, never sends.
 * @param from the text before it was checked
 */
function checkIncomplete(text: string, from: number): void {
  if (!START.startsWith(text.slice(0, START.length))) throw new UnreadableResponse('the status line is malformed');
  for (let at = text.indexOf('\n', from); at !== -1; at = text.indexOf('\n', at + 1))
    if (text[at - 1] !== '\r') throw new UnreadableResponse('a line of the head ends with a bare line feed');
}

/** The fields of a response about its end and its connection. */
interface Framing {
  length: string | undefined;
  /** In lower case; several ones are joined by commas. */
  coding: string | undefined;
  /** In lower case, joined by commas. */
  connection: string;
  keepAlive: string | undefined;
}

/** Whether the upstream keeps the connection open. */
function staysOpen(isVersion11: boolean, { coding, connection }: Framing): boolean {
  const options = connection === '' ? [] : connection.split(',').map((option) => option.trim());
  // A response of HTTP/1.0 with a transfer coding is suspicious (RFC 9112, section 6.1).
  const isKept = isVersion11 || (options.includes('keep-alive') && coding === undefined);
  return isKept && !options.includes('close');
}

function framingOf(fields: readonly string[]): Framing {
  const framing: Framing = { length: undefined, coding: undefined, connection: '', keepAlive: undefined };
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    // Few names are as long as one of these.
    if (name.length === 10 || name.length === 14 || name.length === 17)
      addToFraming(framing, name.toLowerCase(), fields[i + 1] as string);
  }
  return framing;
}

function addToFraming(framing: Framing, lowerName: string, value: string): void {
  switch (lowerName) {
    case 'content-length':
      if (framing.length !== undefined) throw new UnreadableResponse('there are two lengths');
      if (!LENGTH.test(value)) throw new UnreadableResponse('the length is malformed');
      framing.length = value;
      break;
    case 'transfer-encoding':
      // Any coding but chunked would have to be decoded here, or would be forwarded without its name.
      framing.coding = framing.coding === undefined ? value.toLowerCase() : `${framing.coding},${value}`;
      break;
    case 'connection':
      framing.connection += `${value.toLowerCase()},`;
      break;
    case 'keep-alive':
      framing.keepAlive ??= value;
      break;
  }
}

/** @param at start of the first field */
function fieldsOf(head: string, at: number): string[] {
  const fields: string[] = [];
  while (at < head.length) {
    const found = head.indexOf('\r\n', at);
    const end = found === -1 ? head.length : found;
    const colon = head.indexOf(':', at);
    const name = head.slice(at, colon);
    // A value may not go on in the next line either: that line begins with a blank (RFC 9112, section 5.2).
    if (colon === -1 || !NAME.test(name)) throw new UnreadableResponse('the name of a field is malformed');
    fields.push(name, valueIn(head, colon + 1, end));
    at = end + 2;
  }
  return fields;
}

function valueIn(head: string, from: number, end: number): string {
  while (from < end && isBlank(head.charCodeAt(from))) from++;
  while (end > from && isBlank(head.charCodeAt(end - 1))) end--;
  const value = head.slice(from, end);
  if (!VALUE.test(value)) throw new UnreadableResponse('a field has a control character');
  return value;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
