import { describe, expect, it } from 'vitest';
import { readAccount } from '../../src/admission/read-account.ts';
import type { Refusal } from '../../src/exchange/refusal.ts';

describe('an account in the query', () => {
  const route = {
    name: 'GET /',
    source: { place: 'query', name: 'a' },
    isPublic: false,
    idempotent: undefined,
  } as const;
  const read = (query: string) => readAccount({} as never, { path: '/', query }, { route, parameters: new Map() });

  it.each([
    ['a=1', '1'],
    ['b=2&a=1&c', '1'],
    ['b=100%&a=1', '1'],
    ['b=x;y&a=1', '1'],
    ['a=x+y%20z=', 'x y z='],
    ['a=%C3%A9', 'é'],
  ])('%j is read like a form', (query, account) => {
    expect(read(query)).toBe(account);
  });

  it.each([
    ['', 'is missing'],
    ['b=1', 'is missing'],
    ['a', 'is empty'],
    ['a=', 'is empty'],
    ['a=1&a=2', 'is given more than once'],
    ['%61=1&a=%32', 'is given more than once'],
    // `new URLSearchParams` drops the question mark, and reads 2.
    ['?a=2&a=1', 'is given more than once'],
    ['a=%zz', 'malformed percent-encoding'],
    ['%zz=1&a=1', 'malformed percent-encoding'],
    ['a=1;b=2', 'a semicolon'],
  ])('%j is refused', (query, reason) => {
    const detail = expect.stringContaining(reason);
    expect((read(query) as Refusal).problem('r')).toMatchObject({ status: 422, detail });
  });

  // Some servers take each of these names for the account: PHP, Go, .NET, qs, and servers that end a pair at a
  // semicolon.
  it.each(['A=2', 'a[]=2', 'a%5B%5D=2', 'a[0]=2', 'a%00=2', '%20a=2', 'b=c;a=2', 'b;a=2'])(
    'is refused if %j is given as well',
    (other) => {
      for (const query of [`a=1&${other}`, `${other}&a=1`]) {
        const detail = expect.stringMatching(/query/);
        expect((read(query) as Refusal).problem('r')).toMatchObject({ status: 422, detail });
      }
    },
  );
});
