import { expect, it } from 'vitest';
import { after } from '../../src/base/maybe-promise.ts';

it('goes on at once with a value, and later with a promise', async () => {
  expect(after(1, (value) => value + 1)).toBe(2);
  const later = after(Promise.resolve(1), (value) => value + 1);
  expect(later).toBeInstanceOf(Promise);
  expect(await later).toBe(2);
});

it('a rejection is passed on', async () => {
  const error = new Error('gone');
  await expect(after(Promise.reject(error), () => 2)).rejects.toBe(error);
});
