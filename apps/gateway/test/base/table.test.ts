import { expect, test } from 'vitest';
import { aligned, printable } from '../../src/base/table.ts';

test('columns are as wide as their longest cells, and lines have no spaces at their ends', () => {
  const table = [['route', 'max'], ['POST /a', '7'], ['x', '', 'more'], ['y', 'z '], ['short']];
  expect(aligned(table)).toBe('route    max\nPOST /a  7\nx             more\ny        z\nshort\n');
});

test('a table without lines is empty', () => {
  expect(aligned([])).toBe('');
});

test.each([
  ['acc_1!~', 'acc_1!~'],
  ['', '""'],
  ['a b', '"a b"'],
  ['b ', '"b "'],
  [' b', '" b"'],
  ['é', '"\\u00e9"'],
  ['\u001b[31m', '"\\u001b[31m"'],
  ['\u007f', '"\\u007f"'],
  ['a\n', '"a\\n"'],
  ['\u{1f600}', '"\\ud83d\\ude00"'],
  ['~\u0080', '"~\\u0080"'],
])('the name %j is printed as %s', (name, text) => {
  expect(printable(name)).toBe(text);
});
