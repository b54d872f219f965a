/** The short way through a query finds what the parser of forms finds, or leaves the query to it. */
import fc from 'fast-check';
import { createQueryField } from 'headgate/internal';
import { describe, expect, it } from 'vitest';
import { plainValue } from '../../src/admission/read-account.ts';

function parsed(name: string, query: string): string | undefined {
  try {
    const field = createQueryField(name, query.length);
    field.write(Buffer.from(query, 'latin1'));
    return field.end();
  } catch {
    return undefined;
  }
}

const NAMES = ['account_id', 'account_id', 'a', 'id', 'x.y', 'Account'];
const plainPair = fc.constantFrom('account_id=acc_1', 'a=1', 'id=a-b.c~d', 'x_y=', 'b=2');
const oddPair = fc
  .tuple(
    fc.constantFrom(
      'a',
      'Account_Id',
      'account-id',
      'account.id',
      'ID',
      'account_id[]',
      ' id',
      '',
      '?a',
      'account%5fid',
    ),
    fc.constantFrom('=', ''),
    fc.constantFrom('1', '', '%61', '%', 'a+b', 'a;id=1', 'a=b', '\u00c4', 'a\0'),
  )
  .map((parts) => parts.join(''));
const pair = fc.oneof({ weight: 6, arbitrary: plainPair }, { weight: 1, arbitrary: oddPair });

describe('a plain query', () => {
  it('has the value that the parser of forms finds', () => {
    let plain = 0;
    const property = fc.property(fc.constantFrom(...NAMES), fc.array(pair, { maxLength: 4 }), (asked, pairs) => {
      const query = pairs.join('&');
      const found = plainValue(asked, query);
      if (found === undefined) return;
      plain++;
      expect(found).toBe(parsed(asked, query));
    });
    fc.assert(property, { numRuns: 5_000 });
    expect(plain).toBeGreaterThan(50);
  });

  it.each([
    ['account_id=acc_1', 'acc_1'],
    ['limit=10&account_id=acc_1&cursor=a.b-c~d', 'acc_1'],
    ['account_id=', undefined],
    ['account_id=a&account_id=b', undefined],
    ['account_id=a&Account_Id=b', undefined],
    ['account_id=a&account.id=b', undefined],
    ['account_id=a%20b', undefined],
    ['account_id=a&b', undefined],
    ['', undefined],
  ])('%s: %s', (query, expected) => {
    expect(plainValue('account_id', query)).toBe(expected);
  });

  it('is a short one', () => {
    expect(plainValue('account_id', `account_id=${'a'.repeat(2_000)}`)).toBeUndefined();
  });
});
