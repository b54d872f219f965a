import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Envelope } from '../../src/security/envelope.ts';
import { TrackingTokens } from '../../src/tracking/tracking-tokens.ts';

const master = (id: string) => ({ id, key: randomBytes(32) });
const first = master('k1');
const tokens = new TrackingTokens(new Envelope([first]).deriveAll('tracking'));
const link = { sendId: 'eml_1', no: 3, target: 'https://example.com/?a=1' };

test('a token says what was sealed, in characters that need no escape in a URL', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(), fc.string({ unit: 'binary' }), (sendId, no, target) => {
      const token = tokens.sealLink({ sendId, no, target });
      expect(token).toMatch(/^[\w-]+$/);
      expect(tokens.openLink(token)).toEqual({ sendId, no, target });
      expect(tokens.openPixel(tokens.sealPixel(sendId))).toBe(sendId);
    }),
  );
});

test('a token with any other bit is refused', () => {
  const sealed = Buffer.from(tokens.sealLink(link), 'base64url');
  for (let bit = 0; bit < sealed.length * 8; bit++) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(tokens.openLink(changed.toString('base64url'))).toBeUndefined();
  }
});

test('a token with any other character is refused, also if it decodes to the same bytes', () => {
  const token = tokens.sealLink(link);
  const alphabet = 'AQgw19-_=.+/ é';
  for (let at = 0; at <= token.length; at++)
    for (const character of alphabet) {
      const inserted = token.slice(0, at) + character + token.slice(at);
      const replaced = token.slice(0, at) + character + token.slice(at + 1);
      expect(tokens.openLink(inserted)).toBeUndefined();
      if (replaced !== token) expect(tokens.openLink(replaced)).toBeUndefined();
    }
});

test('any other text is refused', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.uint8Array({ maxLength: 99 }).map((b) => Buffer.from(b).toString('base64url')),
      ),
      (text) => {
        expect(tokens.openLink(text)).toBeUndefined();
        expect(tokens.openPixel(text)).toBeUndefined();
      },
    ),
  );
});

test('a token of a pixel opens no link, and a token of a link no pixel', () => {
  expect(tokens.openLink(tokens.sealPixel('eml_1'))).toBeUndefined();
  expect(tokens.openPixel(tokens.sealLink(link))).toBeUndefined();
});

test('after a new master key, old tokens still work; without their key, they do not', () => {
  const token = tokens.sealLink(link);
  const second = master('k2');
  expect(new TrackingTokens(new Envelope([second, first]).deriveAll('tracking')).openLink(token)).toEqual(link);
  expect(new TrackingTokens(new Envelope([second]).deriveAll('tracking')).openLink(token)).toBeUndefined();
});
