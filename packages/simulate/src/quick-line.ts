import { KnownNames, startsWith } from './known-names.ts';
import type { Names, ReadEvent } from './line.ts';
import type { LineCursor } from './line-cursor.ts';

/** What a key and the beginning of its value look like. Lines of one log have the same few, in the same order. */
interface Opening {
  /** Such as `"cost":` or `"account":"`. */
  readonly bytes: Uint8Array;
  readonly isText: boolean;
  /** Whether a line that has it has to be parsed. */
  readonly isParsed: boolean;
  /** Index in {@link NUMBERS} or {@link TEXTS}; {@link NONE} if the value is not needed. */
  readonly field: number;
  /** Openings that came next in other lines. */
  readonly followers: Opening[];
}

const NUMBERS = ['at', 'cost', 'order'];
const TEXTS = ['plan', 'route', 'account', 'provider', 'decision', 'msg', 'req_id'];
/** No two requests have the same. */
const REQUEST_ID = /* @__PURE__ */ TEXTS.indexOf('req_id');
const PARSED = ['blocked', 'degraded'];

/** Bounds of a log whose keys are always other ones: its lines are parsed. */
const MAX_OPENINGS = 64;
const MAX_FOLLOWERS = 8;
/** Any number of so many digits is a safe integer. */
const MAX_DIGITS = 15;
const [SPACE, QUOTE, COMMA, MINUS, DOT, ZERO, NINE, COLON, BACKSLASH, OPEN, CLOSE] = [
  32, 34, 44, 45, 46, 48, 57, 58, 92, 123, 125,
] as const;
const NONE = -1;
const LITERALS = /* @__PURE__ */ ['true', 'false', 'null'].map((text) => new TextEncoder().encode(text));
/** Of the hash by Fowler, Noll and Vo. */
const PRIME = 0x01000193;

/**
 * Reads lines of the gateway's log as the gateway writes them, without parsing all of them, which takes several times as
 * long. It works on bytes, and expects the keys of the lines before.
 */
export class QuickReader {
  readonly #names: KnownNames;
  /** Its followers are the first openings of lines. */
  readonly #start: Opening = { bytes: new Uint8Array(), isText: false, isParsed: false, field: NONE, followers: [] };
  readonly #openings = new Map<string, Opening>();
  /** Values of the current line. */
  readonly #numbers: number[] = NUMBERS.map(() => NONE);
  readonly #texts: (string | undefined)[] = TEXTS.map(() => undefined);

  constructor(names: Names) {
    this.#names = new KnownNames(names);
  }

  /** Undefined for any line that is not exactly so; then it has to be parsed. */
  read(lines: LineCursor): ReadEvent | undefined {
    const { bytes, from, end } = lines;
    if (bytes[from] !== OPEN || bytes[end - 1] !== CLOSE) return undefined;
    this.#numbers.fill(NONE);
    this.#texts.fill(undefined);
    let opening: Opening | undefined = this.#start;
    for (let place = from; place !== end - 1; ) {
      opening = this.#follower(opening, lines, place + 1);
      if (opening === undefined) return undefined;
      place = this.#readValue(opening, lines, place + 1 + opening.bytes.length);
      if (place === NONE || (bytes[place] !== COMMA && place !== end - 1)) return undefined;
    }
    return this.#event();
  }

  #event(): ReadEvent | undefined {
    const [at, cost, order] = this.#numbers as [number, number, number];
    const [plan, route, account, provider, decision, message, id] = this.#texts;
    if (decision !== 'accepted' && decision !== 'rejected') return undefined;
    if (message !== 'request' && message !== 'decision') return undefined;
    if (route === undefined || account === undefined || cost < 1 || at < 0 || order < 0) return undefined;
    return { account, route, at, order, provider, plan, cost, logged: decision, id, settles: undefined, isExact: true };
  }

  /** Returns the place behind the value; {@link NONE} if the line has to be parsed. */
  #readValue({ isText, isParsed, field }: Opening, lines: LineCursor, from: number): number {
    const { bytes } = lines;
    if (isParsed) return NONE;
    if (!isText) {
      const end = endOfScalar(bytes, from);
      if (field !== NONE && end !== NONE) this.#numbers[field] = wholeNumber(bytes, from, end);
      return end;
    }
    if (field !== NONE && field !== REQUEST_ID) return this.#readName(field, lines, from);
    const quote = endOfText(bytes, from);
    if (quote === NONE) return NONE;
    if (field === REQUEST_ID) this.#texts[field] = lines.slice(from, quote);
    return quote + 1;
  }

  #readName(field: number, lines: LineCursor, from: number): number {
    const { bytes, end } = lines;
    let hash = 0;
    let at = from;
    for (; bytes[at] !== QUOTE; at++) {
      const byte = bytes[at] as number;
      if (byte < SPACE || byte === BACKSLASH || at === end) return NONE;
      hash = Math.imul(hash ^ byte, PRIME);
    }
    this.#texts[field] = this.#names.get(lines, from, at, hash);
    return at + 1;
  }

  /** The opening at a place; undefined if the line has to be parsed. */
  #follower({ followers }: Opening, lines: LineCursor, at: number): Opening | undefined {
    const { bytes } = lines;
    for (let i = 0; i < followers.length; i++) {
      const opening = followers[i] as Opening;
      if (startsWith(bytes, at, opening.bytes) && (opening.isText || bytes[at + opening.bytes.length] !== QUOTE))
        return opening;
    }
    const opening = this.#openingAt(lines, at);
    if (opening !== undefined && followers.length < MAX_FOLLOWERS) followers.push(opening);
    return opening;
  }

  #openingAt(lines: LineCursor, at: number): Opening | undefined {
    const { bytes } = lines;
    const quote = bytes[at] === QUOTE ? endOfText(bytes, at + 1) : NONE;
    if (quote === NONE || bytes[quote + 1] !== COLON) return undefined;
    const isText = bytes[quote + 2] === QUOTE;
    const end = quote + (isText ? 3 : 2);
    const text = lines.slice(at, end);
    const known = this.#openings.get(text);
    if (known !== undefined || this.#openings.size === MAX_OPENINGS) return known;
    const key = lines.slice(at + 1, quote);
    const [fields, others] = isText ? [TEXTS, NUMBERS] : [NUMBERS, TEXTS];
    const isParsed = others.includes(key) || PARSED.includes(key);
    const opening = { bytes: bytes.slice(at, end), isText, isParsed, field: fields.indexOf(key), followers: [] };
    this.#openings.set(text, opening);
    return opening;
  }
}

/** Place of the quote that ends a text; {@link NONE} if it has an escape, or ends with the line. */
function endOfText(bytes: Uint8Array, from: number): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at;
    if (byte < SPACE || byte === BACKSLASH) return NONE;
  }
  return NONE;
}

/** Place behind a number without an exponent, `true`, `false` or `null`; {@link NONE} behind any other value. */
function endOfScalar(bytes: Uint8Array, from: number): number {
  if (bytes[from] === MINUS || isDigit(bytes[from])) {
    const first = bytes[from] === MINUS ? from + 1 : from;
    const end = endOfDigits(bytes, first);
    if (end === first || (bytes[first] === ZERO && end > first + 1)) return NONE;
    if (bytes[end] !== DOT) return end;
    const last = endOfDigits(bytes, end + 1);
    return last === end + 1 ? NONE : last;
  }
  const literal = LITERALS.find((bytesOfLiteral) => startsWith(bytes, from, bytesOfLiteral));
  return literal === undefined ? NONE : from + literal.length;
}

function endOfDigits(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(bytes[at])) at++;
  return at;
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

/** A whole number of up to 15 digits; otherwise {@link NONE}. */
function wholeNumber(bytes: Uint8Array, from: number, end: number): number {
  if (end - from > MAX_DIGITS) return NONE;
  let value = 0;
  for (let at = from; at < end; at++) {
    if (!isDigit(bytes[at])) return NONE;
    value = value * 10 + (bytes[at] as number) - ZERO;
  }
  return value;
}
