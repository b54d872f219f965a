import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { BY_CODE, outlookError } from '../../../src/providers/outlook/errors.ts';
import { GraphError } from '../../../src/providers/outlook/graph.ts';
import { createOutlook } from '../../../src/providers/outlook/outlook.ts';
import { scopesOf } from '../../../src/providers/outlook/permissions.ts';

const page = readFileSync(new URL('../../../docs/outlook.md', import.meta.url), 'utf8');

test('apps/communication-api/docs/outlook.md has settings that are accepted, and the permissions that users are asked for', () => {
  const [, block = ''] = /^```sh\n(.*?)```$/ms.exec(page) ?? [];
  const settings = [...block.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]);
  expect(settings).toHaveLength(2);
  expect(createOutlook(readConfig(Object.fromEntries(settings)))).toHaveLength(1);
  for (const [, name = '', value = ''] of page.matchAll(/`(MICROSOFT_\w+)=(https:[^`]+)`/g))
    expect(readConfig({ [name]: value })).toMatchObject({ [name]: value });
  for (const kind of ['drafts', 'send'] as const) {
    const permissions = scopesOf(kind).filter((scope) => scope.startsWith('Mail.'));
    expect(page).toContain(`| \`${kind}\` | ${permissions.map((scope) => `\`${scope}\``).join(', ')} |`);
  }
  for (const scope of scopesOf('drafts')) expect(page).toContain(`\`${scope}\``);
});

test('apps/communication-api/docs/outlook.md has each code of Graph, with the answer that it makes', () => {
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
