import { DatabaseError } from 'pg';
import { expect, it } from 'vitest';
import { isOfStatement } from '../../../src/stores/postgres/errors.ts';

it('an error of the system is not one of a statement, although EPIPE looks like an SQLSTATE', () => {
  const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE', errno: -32, syscall: 'write' });
  expect(isOfStatement(broken)).toBe(false);
  const refused = Object.assign(new DatabaseError('mine', 4, 'error'), { code: 'MYERR', severity: 'ERROR' });
  expect(isOfStatement(refused)).toBe(true);
  expect(isOfStatement(Object.assign(new DatabaseError('ends', 4, 'error'), { code: '57P01' }))).toBe(false);
});
