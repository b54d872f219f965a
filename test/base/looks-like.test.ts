import { expect, it } from 'vitest';
import { looksLike } from '../../src/base/options.ts';

it.each([
  ['costs', 'cost'],
  ['cst', 'cost'],
  ['casts', 'cost', false],
  ['cast', 'cost'],
  ['Cost', 'cost'],
  ['csot', 'cost'],
  ['plann', 'plan'],
  ['plna', 'plan'],
  ['acount', 'account'],
  ['accounts', 'account'],
  ['rotue', 'route'],
  ['host', 'cost', false],
  ['planName', 'plan', false],
  ['amount', 'account', false],
  ['rate', 'route', false],
  ['', 'cost', false],
])('%j looks like %j: %j', (given, name, isAlike = true) => {
  expect(looksLike(given as string, name as string)).toBe(isAlike);
});
