import { expect, it } from 'vitest';
import { retryAfterMs } from '../../src/http/index.ts';

const DATE = 'Fri, 01 Jan 2027 00:00:00 GMT';
const LATER = 'Fri, 01 Jan 2027 00:01:00 GMT';

it.each<[Record<string, string>, number | undefined, number | undefined]>([
  [{ 'retry-after': '0' }, undefined, 0],
  [{ 'retry-after': ' 3 ' }, undefined, 3_000],
  [{ 'retry-after': '0.0001' }, undefined, 1],
  [{ 'retry-after': LATER, date: DATE }, 0, 60_000],
  [{ 'retry-after': DATE, date: LATER }, 0, 0],
  [{ 'retry-after': LATER }, Date.parse(DATE), 60_000],
  [{ 'retry-after': LATER }, undefined, undefined],
  [{ 'retry-after': LATER, date: 'now' }, 0, undefined],
  [{ 'retry-after': '2027-01-01' }, 0, undefined],
  [{ 'retry-after': '1e3' }, 0, undefined],
  [{ 'retry-after': '9'.repeat(16) }, 0, undefined],
  [{ 'retry-after': '' }, 0, undefined],
  [{}, 0, undefined],
])('retry-after of %j, at %s: %s ms', (fields, now, expected) => {
  expect(retryAfterMs((name) => fields[name], now)).toBe(expected);
});
