import { BodyError } from '../body-error.ts';
import { TOKEN } from './parameters.ts';

/** One header of a part of a multipart body. */
export interface PartHeader {
  /** In lower case. */
  readonly name: string;
  /** Everything after the colon as received, with spaces and line folding. */
  readonly value: Uint8Array;
}

const [TAB, LF, CR, SPACE, COLON] = [9, 10, 13, 32, 58];
const NAME = /* @__PURE__ */ new RegExp(`^${TOKEN}$`);

/**
 * Parses the headers of a part. A malformed header is an error: a parser that drops it would treat two different bodies
 * as the same.
 * @param head lines with their line breaks
 * @throws BodyError `malformed_multipart` (422)
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
