import { expect, it } from 'vitest';
import { isHeadgateError, StoreTimeoutError, StoreUnavailableError } from '../../src/core/errors.ts';

it('a store that did not answer says how long it was waited for', () => {
  const error = new StoreTimeoutError(250);
  expect(isHeadgateError(error, 'store_timeout')).toBe(true);
  expect(error).toMatchObject({ deadlineMs: 250, message: 'the store did not answer within 250 ms' });
});

it.each([
  [new Error('ECONNREFUSED'), 'the store could not decide: ECONNREFUSED'],
  ['it is being tried again', 'the store could not decide: it is being tried again'],
])('a store that is away says why, and keeps the cause: %s', (cause, message) => {
  const error = new StoreUnavailableError(cause);
  expect(isHeadgateError(error, 'store_unavailable')).toBe(true);
  expect(error.message).toBe(message);
  expect(error.cause).toBe(cause);
});
