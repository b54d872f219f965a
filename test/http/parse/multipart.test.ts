import fc from 'fast-check';
import {
  boundaries,
  bytesOf,
  chunkLengths,
  contents,
  field,
  inChunks,
  multipart,
  unquoted,
} from 'headgate-testbed/bodies';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { isBodyError } from '../../../src/http/body-error.ts';
import { MultipartParser } from '../../../src/http/parse/multipart.ts';

interface Parsed {
  readonly parts: { headers: string[]; content: string }[];
  outside: string;
  ambiguous: boolean;
}

function parse(body: Uint8Array | string, boundary: string, lengths?: readonly number[]): Parsed {
  const parsed: Parsed = { parts: [], outside: '', ambiguous: false };
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
  const parser = new MultipartParser(boundary, {
    part: (headers) =>
      parsed.parts.push({ headers: headers.map(({ name, value }) => `${name}:${text(value)}`), content: '' }),
    content: (bytes) => {
      const last = parsed.parts.at(-1);
      if (last !== undefined) last.content += text(bytes);
    },
    partEnd: () => {},
    outside: (bytes) => {
      parsed.outside += text(bytes);
    },
  });
  for (const chunk of inChunks(bytesOf(body), lengths)) {
    // The caller reuses the chunk.
    const reused = Buffer.from(chunk);
    parser.write(reused);
    reused.fill(0x2d);
  }
  parser.end();
  parsed.ambiguous = parser.ambiguous;
  return parsed;
}

/** The parsed body, or the message of the error. */
function outcome(body: Uint8Array, boundary: string, lengths?: readonly number[]): Parsed | string {
  try {
    return parse(body, boundary, lengths);
  } catch (error) {
    if (!isBodyError(error)) throw error;
    return error.message;
  }
}

function reasonOf(body: string, boundary = 'b'): string | undefined {
  try {
    parse(body, boundary);
    return undefined;
  } catch (error) {
    return isBodyError(error) ? `${error.status} ${error.reason}` : String(error);
  }
}

const PART = '--b\r\nA: 1\r\n\r\nx\r\n';

describe('a multipart body', () => {
  it('I3: returns its parts, whatever is before, between and after them', () => {
    expect(parse(`before\r\n--b\r\nA: 1\r\nB:2\r\n\r\nx\r\ny\r\n--b\r\n\r\n\r\n--b--\r\nbehind`, 'b')).toEqual({
      parts: [
        { headers: ['a: 1', 'b:2'], content: 'x\r\ny' },
        { headers: [], content: '' },
      ],
      outside: 'before\r\nbehind',
      ambiguous: false,
    });
    expect(parse('--b--', 'b').parts).toEqual([]);
  });

  it('keeps every byte of a header: spaces, line folding, bytes that are not text', () => {
    const { parts } = parse(Buffer.from('--b\r\nA:  \xff\xfe \r\nB: 1\r\n 2\r\n\r\n\r\n--b--', 'latin1'), 'b');
    expect(parts[0]?.headers).toEqual(['a:  \xff\xfe ', 'b: 1\r\n 2']);
  });

  it.each([
    ['no boundary at all', 'hello'],
    ['no last boundary', `${PART}--b`],
    ['no boundary after a part', '--b\r\nA: 1\r\n\r\nx'],
    ['headers without an end', '--b\r\nA: 1\r\n'],
    ['a part without its empty line', '--b\r\nA: 1\r\n--b--'],
    ['a header without a colon', '--b\r\nA\r\n\r\nx\r\n--b--'],
    ['a header without a name', '--b\r\n: 1\r\n\r\nx\r\n--b--'],
    ['a space in a header name', '--b\r\nA : 1\r\n\r\nx\r\n--b--'],
    ['a bare line feed in a header', '--b\r\nA: 1\nB: 2\r\n\r\nx\r\n--b--'],
    ['a bare carriage return in a header', '--b\r\nA: 1\rB: 2\r\n\r\nx\r\n--b--'],
    ['a NUL in a header', '--b\r\nA: \0\r\n\r\nx\r\n--b--'],
    ['a continuation line first', '--b\r\n A: 1\r\n\r\nx\r\n--b--'],
    ['another boundary', '--c\r\nA: 1\r\n\r\nx\r\n--c--'],
  ])('is refused with %s', (_, body) => {
    expect(reasonOf(body)).toBe('422 malformed_multipart');
  });

  it('has at most 1,000 parts, and 16 KiB of headers in each', () => {
    expect(reasonOf(`${PART.repeat(1_000)}--b--`)).toBeUndefined();
    expect(reasonOf(`${PART.repeat(1_001)}--b--`)).toBe('422 too_many_parts');
    expect(reasonOf(`${PART.repeat(10_000)}--b--`)).toBe('422 too_many_parts');
    expect(reasonOf(`--b\r\nA:${'x'.repeat(16_383)}\r\n\r\n\r\n--b--`)).toBe('422 part_headers_too_large');
    expect(reasonOf(`--b\r\nA:${'x'.repeat(16_382)}\r\n\r\n\r\n--b--`)).toBeUndefined();
    expect(reasonOf(`--b\r\nA:${'x'.repeat(1_048_576)}\r\n\r\n\r\n--b--`)).toBe('422 part_headers_too_large');
    expect(reasonOf(`--b\r\n${'A:1\r\n'.repeat(1_048_576)}\r\n\r\n--b--`)).toBe('422 part_headers_too_large');
  });

  it.each([
    ['after a bare line feed', '--b\r\n\r\nx\n--b\r\n\r\n--b--'],
    ['after a bare carriage return', '--b\r\n\r\nx\r--b\r\n\r\n--b--'],
    ['in the middle of a line', '--b\r\n\r\nx--b\r\n\r\n--b--'],
    ['followed by other text', '--b\r\n\r\nx\r\n--by\r\n\r\n--b--'],
    ['followed by one dash', '--b\r\n\r\nx\r\n--b-\r\n\r\n--b--'],
    ['followed by padding', '--b \r\n\r\nx\r\n--b--'],
    ['in the preamble', 'x--b\r\n--b\r\n\r\nx\r\n--b--'],
    ['directly after the headers', '--b\r\nA: 1\r\n\r\n--b\r\nx\r\n--b--'],
    ['after the end', '--b\r\n\r\nx\r\n--b--\r\n--b\r\n'],
  ])('is ambiguous if the boundary appears %s', (_, body) => {
    for (const length of [1, 2, 3, 1_000]) expect(parse(body, 'b', [length]).ambiguous).toBe(true);
  });

  it('I3: any chunking of the same bytes gives the same parts', () => {
    fc.assert(
      fc.property(
        boundaries.chain((quoted) =>
          fc.record({
            boundary: fc.constant(unquoted(quoted)),
            parts: fc.array(
              contents(unquoted(quoted)).map((content) => field('a', content)),
              { maxLength: 4 },
            ),
            preamble: fc.constantFrom('', '\r\n', 'x\r\n', '-\r\n'),
            epilogue: fc.constantFrom('', '\r\n', '--', '\r\nx'),
          }),
        ),
        chunkLengths,
        (written, lengths) => {
          const body = multipart(written);
          const whole = outcome(body, written.boundary);
          expect(outcome(body, written.boundary, lengths)).toEqual(whole);
          // A content that contains the boundary is parsed as something else.
          const texts = written.parts.map(({ content }) => bytesOf(content).toString('latin1'));
          if (texts.some((text) => `\r\n${text}\r\n`.includes(`--${written.boundary}`))) return;
          expect(whole).toMatchObject({ parts: texts.map((content) => ({ content })), ambiguous: false });
        },
      ),
      { numRuns: randomRuns(600) },
    );
  });
});
