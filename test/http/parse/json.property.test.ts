import fc from 'fast-check';
import { bytesOf, chunkLengths, inChunks } from 'headgate-testbed/bodies';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { type JsonHandler, JsonLexer } from '../../../src/http/parse/json.ts';
import { decodeUtf8 } from '../../../src/http/parse/utf8.ts';

/** Joins the tokens to a text without white space. */
function tokens(bytes: Uint8Array, lengths?: readonly number[]): { readonly text: string; readonly isJson: boolean } {
  let text = '';
  let needsComma = false;
  let lexeme: number[] = [];
  const separate = (): void => {
    if (needsComma) text += ',';
    needsComma = false;
  };
  const handler: JsonHandler = {
    open(isObject) {
      separate();
      text += isObject ? '{' : '[';
    },
    close(isObject) {
      text += isObject ? '}' : ']';
      needsComma = true;
    },
    lexeme: (piece, start, end) => void lexeme.push(...piece.subarray(start, end)),
    lexemeEnd(isKey) {
      separate();
      text += Buffer.from(lexeme).toString();
      lexeme = [];
      if (isKey) text += ':';
      needsComma = !isKey;
    },
  };
  const lexer = new JsonLexer(handler);
  for (const chunk of inChunks(bytes, lengths)) lexer.write(chunk);
  lexer.end();
  return { text, isJson: lexer.malformed === undefined };
}

/** The result of the runtime's own parser, with strict UTF-8 and without a byte order mark. */
function parseNatively(bytes: Uint8Array): { readonly value: unknown } | undefined {
  const text = decodeUtf8(bytes);
  if (text === undefined) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const FRAGMENTS = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '\\',
  '\\u00',
  '0',
  '-',
  '1e5',
  '.',
  'true',
  'nul',
  ' ',
  '\n',
  '\u00a0',
  '\uFEFF',
  'é',
  '\0',
  '+',
];

const texts = fc.oneof(
  fc.json({ maxDepth: 6 }).map(bytesOf),
  fc
    .json()
    .chain((json) =>
      fc
        .tuple(fc.nat(json.length), fc.constantFrom(...FRAGMENTS), fc.nat(2))
        .map(([at, fragment, cut]) => bytesOf(json.slice(0, at) + fragment + json.slice(at + cut))),
    ),
  fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 10 }).map((pieces) => bytesOf(pieces.join(''))),
  fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.concat([bytesOf('"'), bytes, bytesOf('"')])),
);

describe('the JSON lexer', () => {
  it('I3: accepts exactly what JSON.parse accepts, and the same value', () => {
    fc.assert(
      fc.property(texts, (bytes) => {
        const expected = parseNatively(bytes);
        const { text, isJson } = tokens(bytes);
        expect(isJson).toBe(expected !== undefined);
        if (expected !== undefined) expect(JSON.parse(text)).toEqual(expected.value);
      }),
      { numRuns: randomRuns(1_500) },
    );
  });

  it('I3: any chunking gives the same tokens', () => {
    fc.assert(
      fc.property(texts, chunkLengths, (bytes, lengths) => {
        const whole = tokens(bytes);
        const cut = tokens(bytes, lengths);
        expect(cut.isJson).toBe(whole.isJson);
        if (whole.isJson) expect(cut).toEqual(whole);
      }),
      { numRuns: randomRuns(1_000) },
    );
  });
});
