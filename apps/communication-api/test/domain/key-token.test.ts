import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Environment, hashOf, isToken, newToken, prefixOf, type Role } from '../../src/domain/key-token.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_';
const tokens = fc
  .tuple(
    fc.constantFrom<Role>('service', 'account', 'scoped'),
    fc.constantFrom<Environment>('development', 'production'),
  )
  .map(([role, environment]) => newToken(role, environment));

test('a token has its marks, 256 random bits and a checksum', () => {
  expect(newToken('service', 'development')).toMatch(/^ck_svc_dev_[0-9A-Za-z]{49}$/);
  expect(newToken('account', 'production')).toMatch(/^ck_acc_live_[0-9A-Za-z]{49}$/);
  expect(newToken('scoped', 'production')).toMatch(/^ck_scp_live_[0-9A-Za-z]{49}$/);
  fc.assert(fc.property(tokens, (token) => isToken(token)));
});

test('a token with one changed character is refused', () => {
  fc.assert(
    fc.property(tokens, fc.nat(), fc.constantFrom(...ALPHABET), (token, at, character) => {
      const index = at % token.length;
      fc.pre(token[index] !== character);
      return !isToken(token.slice(0, index) + character + token.slice(index + 1));
    }),
  );
});

test('a token with two swapped, one missing or one added character is refused', () => {
  fc.assert(
    fc.property(tokens, fc.nat(), (token, at) => {
      const index = at % (token.length - 1);
      const [first = '', second = ''] = [token[index], token[index + 1]];
      const [start, end] = [token.slice(0, index), token.slice(index + 2)];
      expect(isToken(start + second + first + end)).toBe(first === second);
      expect(isToken(start + second + end)).toBe(false);
      expect(isToken(`${start}${first}0${second}${end}`)).toBe(false);
    }),
  );
});

test('other text is refused', () => {
  fc.assert(fc.property(fc.string(), (text) => !isToken(text)));
});

test('a prefix shows four characters of the secret, and does not authenticate', () => {
  fc.assert(
    fc.property(tokens, (token) => {
      const prefix = prefixOf(token);
      expect(token.startsWith(prefix)).toBe(true);
      expect(prefix.slice(prefix.lastIndexOf('_') + 1)).toHaveLength(4);
      expect(isToken(prefix)).toBe(false);
    }),
  );
});

test('a token is stored as its SHA-256 in hexadecimal', () => {
  expect(hashOf('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
