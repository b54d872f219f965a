import { BodyError } from '../body-error.ts';

/** One header of a part. */
export interface PartHeader {
  /** In lower case. */
  readonly name: string;
  /** Everything behind the colon, as it came: blanks, line folding and all. */
  readonly value: Uint8Array;
}

const [TAB, LF, CR, SPACE, COLON] = [9, 10, 13, 32, 58];
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * The headers of a part. Malformed ones are errors: a parser that drops them sees two different bodies as one.
 * @param head lines with their line breaks
 */
export function parsePartHeaders(head: Uint8Array): readonly PartHeader[] {
  const headers: PartHeader[] = [];
  let start = 0;
  while (start < head.length) {
    const end = valueEnd(head, start);
    const colon = head.indexOf(COLON, start);
    const name =
      colon === -1 || colon >= end ? '' : String.fromCharCode(...head.subarray(start, Math.min(colon, start + 256)));
    if (!NAME.test(name) || name.length !== colon - start) throw malformed();
    headers.push({ name: name.toLowerCase(), value: head.slice(colon + 1, end) });
    start = end + 2;
  }
  return headers;
}

/** Where the line and those that continue it end, without the line break. */
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
