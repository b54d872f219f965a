import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { fingerprintOf } from '../../src/idempotency/fingerprint.ts';

describe('I3: the fingerprint of a request that is no HTTP request', () => {
  it('is SHA-256 over text and bytes as they are', () => {
    const hex = createHash('sha256').update('grüße').digest('hex');
    expect(fingerprintOf('grüße')).toBe(`run1-bytes-${hex}`);
    expect(fingerprintOf(new TextEncoder().encode('grüße'))).toBe(`run1-bytes-${hex}`);
    expect(fingerprintOf(new TextEncoder().encode('_grüße').subarray(1))).toBe(`run1-bytes-${hex}`);
  });

  it('does not mind the order of properties, nor those that are undefined', () => {
    const same = [
      { a: 1, b: { c: [1, 2], d: null } },
      { b: { d: null, c: [1, 2] }, a: 1, e: undefined },
    ];
    expect(new Set(same.map(fingerprintOf)).size).toBe(1);
  });

  it('tells everything else apart', () => {
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

  it('is that of the JSON, for what says itself how it is written', () => {
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
  ])('refuses what JSON would merge with something else: %s', (request, option) => {
    expect(() => fingerprintOf(request)).toThrow(expect.objectContaining({ code: 'invalid_option', option }));
  });

  it('refuses what has no end', () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    expect(() => fingerprintOf(circle)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  });

  it('property: equal exactly where the JSON means the same', () => {
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

  describe('where there is no node:crypto', () => {
    afterEach(() => {
      vi.restoreAllMocks();
      vi.resetModules();
    });

    it('is the same, by Web Crypto', async () => {
      vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never);
      vi.resetModules();
      const elsewhere = await import('../../src/idempotency/fingerprint.ts');
      for (const request of ['grüße', new Uint8Array([1, 2]), { a: 1 }]) {
        expect(await elsewhere.fingerprintOf(request)).toBe(fingerprintOf(request));
      }
    });
  });
});
