import { BodyError } from '../body-error.ts';
import { latin1 } from '../platform.ts';
import { TOKEN } from './parameters.ts';

/** One header of a part of a multipart body. */
export class PartHeader {
  /**
   * @param name in lower case
   * @param head all headers of the part; reused for the next part
   * @param start where the value begins: everything after the colon as received, with spaces and line folding
   * @param end where it ends
   */
  constructor(
    readonly name: string,
    readonly head: Uint8Array,
    readonly start: number,
    readonly end: number,
  ) {}

  /** A view, valid until the next part. */
  get value(): Uint8Array {
    return this.head.subarray(this.start, this.end);
  }
}

const [TAB, LF, CR, SPACE, COLON] = [9, 10, 13, 32, 58];
const NAME = /* @__PURE__ */ new RegExp(`^${TOKEN}$`);
const MAX_NAME_BYTES = 256;

/**
 * Parses the headers of a part. A malformed header is an error: a parser that drops it would treat two different bodies
 * as the same.
 * @param head lines with their line breaks
 * @throws BodyError `malformed_multipart` (422)
 */
export function parsePartHeaders(head: Uint8Array): readonly PartHeader[] {
  const headers: PartHeader[] = [];
  const text = latin1(head);
  let start = 0;
  while (start < head.length) {
    const end = valueEnd(head, start);
    let colon = start;
    while (colon < end && head[colon] !== COLON) colon++;
    const name = text.slice(start, colon);
    if (colon === end || name.length > MAX_NAME_BYTES || !NAME.test(name)) throw malformed();
    headers.push(new PartHeader(name.toLowerCase(), head, colon + 1, end));
    start = end + 2;
  }
  return headers;
}

/**
 * The values of every header with this name, in order.
 * @param lowerName in lower case
 */
export function partHeaderValues(headers: readonly PartHeader[], lowerName: string): readonly Uint8Array[] {
  return headers.filter(({ name }) => name === lowerName).map(({ value }) => value);
}

/** Position after the line and its continuation lines, without the line break. */
function valueEnd(head: Uint8Array, start: number): number {
  for (let at = start; at < head.length; at++) {
    const byte = head[at] as number;
    if (byte === CR && head[at + 1] === LF) {
      if (head[at + 2] !== SPACE && head[at + 2] !== TAB) return at;
      at++;
    } else if (byte === CR || byte === LF || byte === 0) throw malformed();
  }
  throw malformed();
}

function malformed(): BodyError {
  return new BodyError(422, 'malformed_multipart', 'A part of the multipart body has a malformed header.');
}
