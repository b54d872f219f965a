import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { fingerprintOf } from '../../src/idempotency/fingerprint.ts';

describe('I3: the fingerprint of a request to run()', () => {
  it('is the SHA-256 of text and bytes as they are', () => {
    const hex = createHash('sha256').update('grüße').digest('hex');
    expect(fingerprintOf('grüße')).toBe(`run1-bytes-${hex}`);
    expect(fingerprintOf(new TextEncoder().encode('grüße'))).toBe(`run1-bytes-${hex}`);
    expect(fingerprintOf(new TextEncoder().encode('_grüße').subarray(1))).toBe(`run1-bytes-${hex}`);
  });

  it('ignores the order of properties, and properties that are undefined', () => {
    const same = [
      { a: 1, b: { c: [1, 2], d: null } },
      { b: { d: null, c: [1, 2] }, a: 1, e: undefined },
    ];
    expect(new Set(same.map(fingerprintOf)).size).toBe(1);
  });

  it('differs for all other different values', () => {
    const all = [
      '',
      '{}',
      {},
      [],
      null,
      0,
      '0',
      [0],
      [[0]],
      { a: [0] },
      { a: { 0: 0 } },
      { a: '0' },
      true,
      'true',
      1,
      1.5,
    ];
    expect(new Set(all.map(fingerprintOf)).size).toBe(all.length);
  });

  it('uses toJSON() of a value that has one', () => {
    expect(fingerprintOf({ at: new Date(0) })).toBe(fingerprintOf({ at: '1970-01-01T00:00:00.000Z' }));
  });

  it.each([
    [undefined, 'request'],
    [Number.NaN, 'request'],
    [{ a: [1, undefined] }, 'request.a[1]'],
    [{ a: new Map([[1, 2]]) }, 'request.a'],
    [{ a: { b: () => 1 } }, 'request.a.b'],
    [10n, 'request'],
    [new FormData(), 'request'],
  ])('rejects a value that JSON would drop or write like another value: %s', (request, option) => {
    expect(() => fingerprintOf(request)).toThrow(expect.objectContaining({ code: 'invalid_option', option }));
  });

  it('rejects a circular value', () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(() => fingerprintOf(circle)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  });

  it('property: equal if and only if the JSON values are equal', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const text = (value: unknown) => JSON.stringify(value);
        expect(fingerprintOf({ a })).toBe(fingerprintOf(JSON.parse(text({ a }))));
        if (text(a) !== text(b) && fingerprintOf({ a }) === fingerprintOf({ a: b })) {
          expect(JSON.parse(text(a))).toEqual(JSON.parse(text(b)));
        }
      }),
    );
  });

  describe('without node:crypto', () => {
    afterEach(() => {
      vi.restoreAllMocks();
      vi.resetModules();
    });

    it.each([
      ['the platform does not have it', () => undefined],
      [
        'the platform throws, as the Edge runtime of Next.js does',
        () => {
          throw new Error('A Node.js API is used (process.getBuiltinModule) which is not supported');
        },
      ],
    ])('is the same, computed with Web Crypto: %s', async (_, getBuiltinModule) => {
      vi.spyOn(process, 'getBuiltinModule').mockImplementation(getBuiltinModule as never);
      vi.resetModules();
      const elsewhere = await import('../../src/idempotency/fingerprint.ts');
      for (const request of ['grüße', new Uint8Array([1, 2]), { a: 1 }]) {
        expect(await elsewhere.fingerprintOf(request)).toBe(fingerprintOf(request));
      }
    });
  });
});
