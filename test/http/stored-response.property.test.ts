import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { decodeResponse, encodeResponse, keepsField, storedFields } from '../../src/http/stored-response.ts';

const text = fc.string({ unit: 'binary', maxLength: 40 });
const response = fc.record({
  status: fc.integer({ min: 200, max: 999 }),
  fields: fc.array(fc.tuple(text, text), { maxLength: 6 }).map((pairs) => pairs.flat()),
  body: fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    text.map((value) => new TextEncoder().encode(value)),
    // Bytes that a decoder may drop or replace.
    fc
      .constantFrom([0xef, 0xbb, 0xbf, 0x61], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xe2, 0x82], [0x0a, 0x62], [0], [])
      .map((bytes) => Uint8Array.from(bytes)),
  ),
});

describe('I4: a stored response', () => {
  it('is decoded with the status, the fields and the bytes with which it was encoded', () => {
    fc.assert(
      fc.property(response, (stored) => {
        const decoded = decodeResponse(encodeResponse(stored));
        expect(decoded).toEqual({ ...stored, body: Uint8Array.from(stored.body) });
      }),
      { numRuns: randomRuns(200) },
    );
  });

  it('may have a body of 1 MiB, of text or of bytes, and text is stored without overhead', () => {
    for (const byte of [0x61, 0xff]) {
      const body = new Uint8Array(1_048_576).fill(byte);
      const value = encodeResponse({ status: 200, fields: [], body });
      expect(value.length).toBeLessThan(byte === 0x61 ? 1_048_600 : 1_400_000);
      expect(decodeResponse(value)?.body).toEqual(body);
    }
  });

  it('any other text is decoded as undefined, never as an exception or half a response', () => {
    const garbage = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc.tuple(fc.json(), fc.string()).map(([head, rest]) => `${head}\n${rest}`),
    );
    fc.assert(fc.property(garbage, (value) => decodeResponse(value) === undefined));
  });

  it.each([
    ['another version', '[2,200,[]]\ntok'],
    ['a status out of range', '[1,99,[]]\ntok'],
    ['a status that is text', '[1,"200",[]]\ntok'],
    ['half a field', '[1,200,["a"]]\ntok'],
    ['a field that is not text', '[1,200,["a",1]]\ntok'],
    ['no encoding', '[1,200,[]]\n'],
    ['an unknown encoding', '[1,200,[]]\nxok'],
    ['no body at all', '[1,200,[]]'],
    ['broken base64', '[1,200,[]]\nb%%%'],
    ['an object', '{"0":1,"1":200,"2":[]}\ntok'],
    ['null', 'null\ntok'],
  ])('is undefined with %s', (_what, value) => expect(decodeResponse(value)).toBeUndefined());

  it('is undefined if it is cut off anywhere in its head', () => {
    fc.assert(
      fc.property(response, fc.nat(), (stored, at) => {
        const value = encodeResponse(stored);
        const head = value.indexOf('\n');
        expect(decodeResponse(value.slice(0, at % (head + 1)))).toBeUndefined();
      }),
    );
  });
});

describe('I4: which fields are stored', () => {
  const never = [
    'Set-Cookie',
    'DATE',
    'Connection',
    'Keep-Alive',
    'Transfer-Encoding',
    'Content-Length',
    'Upgrade',
    'Trailer',
    'TE',
    'Proxy-Authenticate',
    'X-RateLimit-Limit',
    'x-ratelimit-anything',
    'RateLimit',
    'RateLimit-Policy',
    'Retry-After',
    'X-Request-Id',
    'Idempotency-Replayed',
    'Idempotency-Status',
  ];

  it.each(never)('never %s, whatever the option returns', (name) => {
    expect(storedFields([name, 'x', 'x-own', '1'], () => true)).toEqual(['x-own', '1']);
    expect(keepsField(name.toLowerCase())).toBe(false);
  });

  it('all others in their order and case, repeated ones too; the option gets names in lower case', () => {
    const seen: string[] = [];
    const fields = ['Content-Type', 'a', 'ETag', 'b', 'X-Own', '1', 'X-Own', '2'];
    const stored = storedFields(fields, (name) => {
      seen.push(name);
      return name !== 'etag';
    });
    expect(stored).toEqual(['Content-Type', 'a', 'X-Own', '1', 'X-Own', '2']);
    expect(seen).toEqual(['content-type', 'etag', 'x-own', 'x-own']);
  });
});

it('I4: hop-by-hop fields are never stored, also if only the Connection field of the response names them', () => {
  const fields = [
    'Connection',
    'x-hop, close',
    'X-Hop',
    '1',
    'Proxy-Authentication-Info',
    'n',
    'Keep-Alive',
    '5',
    'X-Kept',
    '2',
  ];
  expect(storedFields(fields)).toEqual(['X-Kept', '2']);
});
