import { expect, it } from 'vitest';
import { isHeadgateError, StoreTimeoutError, StoreUnavailableError } from '../../src/base/errors.ts';

it('a timeout error has the deadline', () => {
  const error = new StoreTimeoutError(250);
  expect(isHeadgateError(error, 'store_timeout')).toBe(true);
  expect(error).toMatchObject({ deadlineMs: 250, message: 'the store did not answer within 250 ms' });
});

it.each([
  [new Error('ECONNREFUSED'), 'the store is unavailable: ECONNREFUSED'],
  ['no connection', 'the store is unavailable: no connection'],
])('the error of an unavailable store has the reason, and the cause: %s', (cause, message) => {
  const error = new StoreUnavailableError(cause);
  expect(isHeadgateError(error, 'store_unavailable')).toBe(true);
  expect(error.message).toBe(message);
  expect(error.cause).toBe(cause);
});
