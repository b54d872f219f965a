import { expect, test } from 'vitest';
import { errorNameOf, parseAnswer, retryAfterOf, secondsUntil } from '../../src/providers/answers.ts';
import { logged } from '../support/logged.ts';
import { secret } from '../support/secret.ts';

test('an answer that is not JSON is not in its error: it may have a token', () => {
  expect(parseAnswer('{"id":"1"}')).toEqual({ id: '1' });
  const token = secret();
  for (const text of [token, `{"token":${token}}`, `{"token":"${token}"`, `"${token}" ${token}`]) {
    let thrown: unknown;
    try {
      parseAnswer(text);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(Error);
    expect(logged(thrown)).not.toContain(token.slice(0, 8));
  }
});

test.each([
  ['0', 0],
  ['999999', 999_999],
  ['1000000', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['Fri, 31 Dec 9999 23:59:59 GMT', undefined],
  [undefined, undefined],
])('retry-after: %s', (value, seconds) => {
  expect(retryAfterOf(new Headers(value === undefined ? {} : { 'retry-after': value }))).toBe(seconds);
});

test('a time to wait until is at least a second away, and not further than the field can say', () => {
  const now = Date.parse('2027-01-01T00:00:00Z');
  const until = (ms: number): number | undefined => secondsUntil(new Date(now + ms).toISOString(), now);
  expect([until(-1_000), until(1), until(1_001), until(999_999_000)]).toEqual([1, 1, 2, 999_999]);
  expect([until(999_999_001), secondsUntil('soon', now), secondsUntil('', now)]).toEqual(Array(3).fill(undefined));
});

test('the name of an error is a word', () => {
  expect(errorNameOf('ErrorItemNotFound')).toBe('ErrorItemNotFound');
  for (const text of ['<script>', 'ya29.a0', 'x'.repeat(81), '', 5, undefined]) expect(errorNameOf(text)).toBe('');
});
