import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { EVENT_TYPES } from '../../src/domain/event-types.ts';

test('apps/communication-api/docs/accounts.md lists each type of event once', () => {
  const page = readFileSync(new URL('../../docs/accounts.md', import.meta.url), 'utf8');
  const [, table = ''] = /^## Events\n[\s\S]*?((?:^\|.*\n)+)/m.exec(page) ?? [];
  const types = table.split('\n').flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([a-z_.]+)`/g)]);
  expect(types.map(([, type]) => type).sort()).toEqual([...EVENT_TYPES].sort());
});
