import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BY_CODE, outlookError } from '../../../src/providers/outlook/errors.ts';
import { GraphError } from '../../../src/providers/outlook/graph.ts';

test('docs/service/outlook.md has each code of Graph, with the answer that it makes', () => {
  const page = readFileSync(new URL('../../../../../docs/service/outlook.md', import.meta.url), 'utf8');
  const [, table = ''] = /^\| Graph says \|.*\n\|.*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const rows = table.split('\n').flatMap((row) => {
    const [, says = '', answer = ''] = row.split(' | ').length === 2 ? ['', ...row.split(' | ')] : [];
    return [...says.matchAll(/`(\w+)`/g)].map(([, code = '']) => [code, answer.replaceAll(/[`|]/g, '').trim()]);
  });
  const made = Object.keys(BY_CODE).map((code) => {
    const { status, type } = outlookError(new GraphError(400, code, undefined)) as unknown as Record<string, string>;
    return [code, `${status} ${type}`];
  });
  expect(rows.sort()).toEqual(made.sort());
});

test('an error without a known code is judged by its status, and what a proxy wrote is not shown', () => {
  const errorOf = (status: number, code: string) => outlookError(new GraphError(status, code, undefined));
  expect(errorOf(403, 'NewCode')).toMatchObject({ status: 403, type: 'errors/insufficient_permissions' });
  expect(errorOf(413, '')).toMatchObject({ status: 422, type: 'errors/limit_exceeded' });
  expect(errorOf(400, '<script>')).toMatchObject({ status: 422, message: expect.stringContaining('(400)') });
  expect(errorOf(400, 'ErrorNew')).toMatchObject({ message: expect.stringContaining('(ErrorNew)') });
});
