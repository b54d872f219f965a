import { expect, test } from 'vitest';
import { hashPassword, isPassword } from '../../src/security/passwords.ts';

test('a password fits its own hash only, in each way to type it', async () => {
  const hash = await hashPassword('Käse und Brot');
  expect(hash).toMatch(/^scrypt\$32768\$8\$3\$[\w-]{22}\$[\w-]{43}$/);
  expect(await isPassword('Käse und Brot', hash)).toBe(true);
  expect(await isPassword('Ka\u0308se und Brot', hash)).toBe(true);
  expect(await isPassword('Käse und brot', hash)).toBe(false);
  expect(await hashPassword('Käse und Brot')).not.toBe(hash);
});

test('nobody has the password of a login that does not exist', async () => {
  expect(await isPassword('', undefined)).toBe(false);
});

test('many at a time are all answered', async () => {
  const hash = await hashPassword('a long password');
  const results = await Promise.all(['a long password', 'b', 'c', 'a long password'].map((p) => isPassword(p, hash)));
  expect(results).toEqual([true, false, false, true]);
});
