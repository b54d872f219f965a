import { KnownNames, startsWith } from './known-names.ts';
import type { Names, ReadEvent } from './line.ts';
import type { LineCursor } from './line-cursor.ts';

/** What a key and the beginning of its value look like. Lines of one log have the same few, in the same order. */
interface Opening {
  /** Such as `"cost":` or `"account":"`. */
  readonly bytes: Uint8Array;
  readonly field: Field;
  readonly isText: boolean;
  /** Openings that came next in other lines. */
  readonly followers: Opening[];
}

type Field = (typeof FIELDS)[number] | undefined;

const NUMBERS = ['at', 'cost', 'order'] as const;
const TEXTS = ['plan', 'route', 'req_id', 'account', 'provider', 'decision', 'msg'] as const;
/** A line with such a key has to be parsed. */
const PARSED = ['blocked', 'degraded'] as const;
const FIELDS = [...NUMBERS, ...TEXTS, ...PARSED] as const;

/** Bounds of a log whose keys are always other ones: its lines are parsed. */
const MAX_OPENINGS = 64;
const MAX_FOLLOWERS = 8;
/** Any number of so many digits is a safe integer. */
const MAX_DIGITS = 15;
const [SPACE, QUOTE, COMMA, MINUS, DOT, ZERO, NINE, COLON, BACKSLASH, OPEN, CLOSE] = [
  32, 34, 44, 45, 46, 48, 57, 58, 92, 123, 125,
] as const;
const NONE = -1;
const LITERALS = ['true', 'false', 'null'].map((text) => new TextEncoder().encode(text));
/** Of the hash by Fowler, Noll and Vo. */
const PRIME = 0x01000193;

/**
 * Reads lines of the gateway's log as the gateway writes them, without parsing all of them, which takes several times as
 * long. It works on bytes, and expects the keys of the lines before.
 */
export class QuickReader {
  readonly #names: KnownNames;
  /** Its followers are the first openings of lines. */
  readonly #start: Opening = { bytes: new Uint8Array(), field: undefined, isText: false, followers: [] };
  readonly #openings = new Map<string, Opening>();

  constructor(names: Names) {
    this.#names = new KnownNames(names);
  }

  /** Undefined for any line that is not exactly so; then it has to be parsed. */
  read(lines: LineCursor): ReadEvent | undefined {
    const { bytes, from, end } = lines;
    if (bytes[from] !== OPEN || bytes[end - 1] !== CLOSE) return undefined;
    let at: number = NONE;
    let cost: number = NONE;
    let order: number = NONE;
    let account: string | undefined;
    let route: string | undefined;
    let provider: string | undefined;
    let plan: string | undefined;
    let decision: string | undefined;
    let message: string | undefined;
    let id: string | undefined;
    let opening = this.#start;
    for (let place = from; place !== end - 1; ) {
      const next = this.#follower(opening, lines, place + 1);
      if (next === undefined) return undefined;
      opening = next;
      const { field, isText } = opening;
      const value = place + 1 + opening.bytes.length;
      if (!isText) {
        place = endOfScalar(bytes, value);
        if (place === NONE) return undefined;
        if (field === 'at') at = wholeNumber(bytes, value, place);
        else if (field === 'cost') cost = wholeNumber(bytes, value, place);
        else if (field === 'order') order = wholeNumber(bytes, value, place);
        else if (field !== undefined) return undefined;
      } else if (field === undefined || field === 'req_id') {
        const quote = endOfText(bytes, value);
        if (quote === NONE) return undefined;
        if (field === 'req_id') id = lines.slice(value, quote);
        place = quote + 1;
      } else {
        let hash = 0;
        let quote = value;
        for (; bytes[quote] !== QUOTE; quote++) {
          const byte = bytes[quote] as number;
          if (byte < SPACE || byte === BACKSLASH || quote === end) return undefined;
          hash = Math.imul(hash ^ byte, PRIME);
        }
        const name = this.#names.get(lines, value, quote, hash);
        if (field === 'account') account = name;
        else if (field === 'route') route = name;
        else if (field === 'provider') provider = name;
        else if (field === 'plan') plan = name;
        else if (field === 'decision') decision = name;
        else if (field === 'msg') message = name;
        else return undefined;
        place = quote + 1;
      }
      if (bytes[place] !== COMMA && place !== end - 1) return undefined;
    }
    if (decision !== 'accepted' && decision !== 'rejected') return undefined;
    if (message !== 'request' && message !== 'decision') return undefined;
    if (route === undefined || account === undefined) return undefined;
    if (!(cost > 0 && at >= 0 && order >= 0)) return undefined;
    return {
      account,
      route,
      at,
      order,
      provider,
      plan,
      cost,
      logged: decision,
      id,
      settles: undefined,
      isExact: true,
    };
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
    const field = FIELDS.find((name) => name === key);
    const opening = { bytes: bytes.slice(at, end), field, isText, followers: [] };
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
