import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readIdempotencyKey } from '../../src/http/idempotency-key.ts';

const printable = fc.string({
  unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 255,
});

describe('I1: the key', () => {
  it('is optional', () => expect(readIdempotencyKey([])).toBeUndefined());

  it('is any 1 to 255 printable ASCII characters, unchanged', () => {
    const raw = printable.filter((key) => !/^".*"$/.test(key));
    fc.assert(fc.property(raw, (key) => readIdempotencyKey([key]) === key));
    for (const key of ['a', ' ', 'a, b', 'k'.repeat(255)]) expect(readIdempotencyKey([key])).toBe(key);
  });

  it('is the same raw and in the quoted form of the draft', () => {
    expect(readIdempotencyKey(['"8e03978e-40d5-43dd-bc93-6894a57f9324"'])).toBe('8e03978e-40d5-43dd-bc93-6894a57f9324');
    const quoted = (key: string) => `"${key.replace(/["\\]/g, '\\$&')}"`;
    fc.assert(fc.property(printable, (key) => readIdempotencyKey([quoted(key)]) === key));
  });

  it.each([['"'], ['"a'], ['a"'], ['"a"b"'], ['"a\\"'], ['"\\a"'], ['"a";b=1']])('is taken as it is: %s', (key) =>
    expect(readIdempotencyKey([key])).toBe(key),
  );

  it.each([
    ['empty', [''], /empty/],
    ['empty in quotes', ['""'], /empty/],
    ['256 characters in quotes', [`"${'k'.repeat(256)}"`], /has 256 characters; the maximum is 255/],
    ['256 characters', ['k'.repeat(256)], /has 256 characters; the maximum is 255/],
    ['given twice', ['a', 'b'], /more than once/],
    ['given twice with the same value', ['a', 'a'], /more than once/],
    ['a control character', ['a\tb'], /printable ASCII/],
    ['a DEL character', ['a\x7f'], /printable ASCII/],
    ['a line break at its end', ['a\n'], /printable ASCII/],
    ['another script', ['ключ'], /printable ASCII/],
    ['a Latin-1 character', ['é'], /printable ASCII/],
  ])('is refused: %s', (_what, values, detail) => {
    expect(readIdempotencyKey(values)).toEqual({ detail: expect.stringMatching(detail) });
  });

  it('any other string is refused, and the detail does not repeat it', () => {
    const other = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 300 })
      .filter((key) => !/^[\x20-\x7e]{1,255}$/.test(key));
    fc.assert(
      fc.property(other, (key) => {
        const fault = readIdempotencyKey([key]);
        expect(fault).toEqual({ detail: expect.any(String) });
        if (key.length > 10) expect((fault as { detail: string }).detail).not.toContain(key);
      }),
    );
  });
});
