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

/** A hash that takes no time. */
const CHEAP = `scrypt$16$8$1$${'A'.repeat(22)}$${'A'.repeat(43)}`;

test('some more than are compared at a time wait, and are all answered', async () => {
  const hash = await hashPassword('a long password');
  const passwords = ['a long password', ...Array.from({ length: 33 }, (_, i) => `wrong ${i}`)];
  const results = await Promise.all(passwords.map((each, i) => isPassword(each, i === 0 ? hash : CHEAP)));
  expect(results).toEqual(passwords.map((_, i) => i === 0));
});

test('a flood of passwords is refused, so that it neither fills the memory nor has the next person wait', async () => {
  const results = await Promise.allSettled(Array.from({ length: 50 }, () => isPassword('wrong', CHEAP)));
  const refused = results.filter(({ status }) => status === 'rejected');
  expect(refused).toHaveLength(16);
  expect(refused[0]).toMatchObject({ reason: { status: 503, retryAfter: 5 } });
  expect(await isPassword('wrong', CHEAP)).toBe(false);
});
