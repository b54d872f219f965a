const LINE_FEED = 10;
/** A byte order mark inside the source is a character like any other. */
const DECODER = /* @__PURE__ */ new TextDecoder('utf-8', { ignoreBOM: true });

/** The lines of a part of the source, one at a time. There are millions, so lines are not separate objects. */
export class LineCursor {
  readonly bytes: Uint8Array;
  /** The current line is `bytes` from here, */
  from = 0;
  /** to here, without its line feed. */
  end = -1;
  /** The same in the text. */
  #textFrom = 0;
  #textEnd = -1;
  readonly #text: string;
  /** Whether each byte is one character, so that positions in both are the same. Most logs are ASCII. */
  readonly #isAligned: boolean;

  /** @param bytes whole lines; the last one may lack its line feed */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#text = DECODER.decode(bytes);
    // A character never takes more UTF-16 units than bytes in UTF-8, so if the lengths are equal, each byte is one
    // character.
    this.#isAligned = this.#text.length === bytes.length;
  }

  /** Moves to the next line. Returns false at the end. */
  next(): boolean {
    const { bytes } = this;
    const from = this.end + 1;
    if (from >= bytes.length) return false;
    this.#textFrom = this.#textEnd + 1;
    this.#textEnd = placeOr(this.#text.length, this.#text.indexOf('\n', this.#textFrom));
    this.from = from;
    this.end = this.#isAligned ? this.#textEnd : placeOr(bytes.length, bytes.indexOf(LINE_FEED, from));
    return true;
  }

  /** The current line. */
  get text(): string {
    return this.#text.slice(this.#textFrom, this.#textEnd);
  }
}

/** What `indexOf` found, or else the end. */
function placeOr(end: number, found: number): number {
  return found === -1 ? end : found;
}
