import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createBodyField } from '../../../src/http/field/body-field.ts';
import { FoldedName } from '../../../src/http/field/folded-name.ts';

/** The rule, without regard to time. */
function folded(name: string): string {
  return name
    .replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    .normalize('NFKC')
    .toLowerCase()
    .replace(/^[\s[]+/, '')
    .replace(/[[\]\0].*$/s, '')
    .trim()
    .replace(/[\s.-]/g, '_');
}

const MARKS = ['\u0315', '\u0300', '\u0301', '\u0323', '\u3099', '\u0345', '\u0f71', '\uff9e', '\uff9f', '\u0307'];
const FIELDS = [
  'account_id',
  'a_',
  '_',
  '',
  'a b',
  'user.name',
  'é',
  'ᾂ',
  'i\u0307',
  'fi',
  'K',
  'Σ',
  '[x]',
  'x\u0301\u0301',
];
const pieces = fc.oneof(
  fc.constantFrom(
    'account',
    '_',
    'id',
    'ACCOUNT_ID',
    'a',
    'A',
    'i',
    'I',
    'x',
    'e',
    'α',
    'K',
    '\u212a',
    'ﬁ',
    'Σ',
    'ς',
    'İ',
  ),
  fc.constantFrom('[', ']', '\0', '.', '-', ' ', '\t', '%', '%4', '%41', '%00', '%5b', '%c3%a9', '%2541', '%CC%80'),
  fc.constantFrom(
    '\u3000',
    '\u00a0',
    '\ufeff',
    '\u2028',
    '\u1680',
    '\uff3b',
    '\uff3d',
    '\u00a8',
    '\x85',
    'ａ',
    '\ud800',
    '😀',
  ),
  fc.constantFrom(...MARKS),
  fc.constantFrom(...MARKS, ' ', '\u3000', '[').map((piece) => piece.repeat(150)),
);
/** A field's name, and a name that begins or ends like it more often than not. */
const pairs = fc
  .tuple(fc.constantFrom(...FIELDS), fc.constantFrom('', '[', ' ', 'x'), fc.array(pieces, { maxLength: 4 }), fc.nat(2))
  .map(([field, before, more, order]) => {
    const rest = more.join('');
    return { field, candidate: before + [field + rest, rest + field, rest][order] };
  });

describe('a name that some server takes for the name of the field', () => {
  it('is found as if every name were folded', () => {
    let found = 0;
    fc.assert(
      fc.property(pairs, ({ field, candidate }) => {
        const expected = folded(candidate) === folded(field);
        if (expected) found++;
        expect(new FoldedName(field).matches(candidate)).toBe(expected);
      }),
      { numRuns: randomRuns(10_000) },
    );
    expect(found).toBeGreaterThan(1_000);
  });
});

describe('a hostile body', () => {
  afterEach(() => void vi.restoreAllMocks());

  const marks = '\u0315\u0300'.repeat(900);
  it.each([
    ['JSON', 'application/json', `{"account_id":"a","${marks}":1}`],
    ['a form', 'application/x-www-form-urlencoded', `account_id=a&${marks}=1`],
    [
      'multipart',
      'multipart/form-data; boundary=b',
      `${['account_id', marks]
        .map((name) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\na\r\n`)
        .join('')}--b--`,
    ],
  ])('%s: never normalizes a long run of marks, which takes quadratic time', (_, contentType, body) => {
    const normalize = vi.spyOn(String.prototype, 'normalize');
    const field = createBodyField({ name: 'account_id', contentType });
    field.write(Buffer.from(body));
    expect(field.end()).toBe('a');
    const longest = normalize.mock.contexts.map((text) =>
      Math.max(0, ...(String(text).match(/\p{M}+/gu) ?? []).map((run) => run.length)),
    );
    expect(Math.max(0, ...longest)).toBeLessThanOrEqual(100);
  });
});
