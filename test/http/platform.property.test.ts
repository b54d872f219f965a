import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { afterEach, describe, expect, it, vi } from 'vitest';
import * as node from '../../src/http/platform.ts';
import * as web from '../../src/http/platform-web.ts';

const text = fc.string({ unit: 'binary' });
/** Includes lone surrogates. */
const anyText = fc.oneof(
  text,
  fc.array(fc.nat(0xffff)).map((units) => String.fromCharCode(...units)),
);
const bytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ minLength: 8_000, maxLength: 20_000 }));
const secret = fc.option(fc.oneof(anyText, fc.uint8Array({ maxLength: 150 })), { nil: undefined });
const hex = (given: Uint8Array | undefined) => given && Buffer.from(given).toString('hex');

/** Both must agree, because another runtime may read a fingerprint or a response that one runtime stored. */
describe('platform.ts and platform-web.ts', () => {
  it('have the same functions', () => {
    const same: typeof node = web;
    expect(Object.keys(same).sort()).toEqual(Object.keys(node).sort());
  });

  it('return the same digest, in whatever pieces the data is passed', () => {
    fc.assert(
      fc.property(secret, fc.array(fc.oneof(anyText, bytes)), (key, pieces) => {
        const [ofNode, ofWeb] = [node.createDigest(key), web.createDigest(key)];
        for (const piece of pieces) {
          ofNode.update(piece);
          ofWeb.update(piece);
        }
        expect(hex(ofWeb.digest())).toBe(hex(ofNode.digest()));
      }),
    );
  });

  it('return the same digest of a text', () => {
    fc.assert(
      fc.property(anyText, secret, (given, key) => {
        expect(web.digestText(given, key)).toBe(node.digestText(given, key));
      }),
    );
  });

  it('return the same digest of bytes', () => {
    fc.assert(
      fc.property(bytes, (given) => {
        expect(hex(web.digestBytes(given))).toBe(hex(node.digestBytes(given)));
      }),
    );
  });

  it('find a pattern at the same place', () => {
    // Only two letters, so that patterns begin often, repeat within themselves, and are found.
    const letters = (options: object) =>
      fc.array(fc.constantFrom(45, 97), options).map((given) => Uint8Array.from(given));
    const found = new Set<boolean>();
    fc.assert(
      fc.property(
        letters({ maxLength: 60 }),
        letters({ minLength: 1, maxLength: 6 }),
        fc.nat(60),
        (all, part, from) => {
          const expected = node.indexOf(all, part, from);
          found.add(expected >= 0);
          expect(web.indexOf(all, part, from)).toBe(expected);
        },
      ),
      { numRuns: randomRuns(300) },
    );
    expect(found.size).toBe(2);
  });

  it('write and read bytes as the same text', () => {
    fc.assert(
      fc.property(bytes, (given) => {
        expect(web.latin1(given)).toBe(node.latin1(given));
        expect(web.base64(given)).toBe(node.base64(given));
        expect(web.base64url(given)).toBe(node.base64url(given));
        expect(hex(web.bytesOfLatin1(node.latin1(given)))).toBe(hex(given));
        expect(hex(web.fromBase64(node.base64(given)))).toBe(hex(given));
      }),
    );
  });

  it('accept the same text as base64', () => {
    const nearly = fc.string({ unit: fc.constantFrom('A', 'b', '9', '+', '/', '=', '-', ' '), maxLength: 8 });
    fc.assert(
      fc.property(nearly, (given) => {
        expect(hex(web.fromBase64(given))).toBe(hex(node.fromBase64(given)));
      }),
      { numRuns: randomRuns(300) },
    );
  });

  describe('nextTurn', () => {
    afterEach(() => vi.restoreAllMocks());

    it('of the web works if setImmediate throws, as in the Edge runtime of Next.js', async () => {
      vi.spyOn(globalThis, 'setImmediate').mockImplementation(() => {
        throw new Error('A Node.js API is used (setImmediate) which is not supported');
      });
      await web.nextTurn();
      await expect(node.nextTurn()).rejects.toThrow('setImmediate');
    });
  });
});
