import { expect, it } from 'vitest';
import type { ClaimRecord } from '../../../src/core/claim.ts';
import { ClaimTable } from '../../../src/stores/memory/claim-table.ts';

it('I13: a scope is forgotten with its last claim, so that scopes that come and go do not pile up', () => {
  const table = new ClaimTable(10);
  const record = { state: 'in_progress' } as ClaimRecord;
  const [first, second] = [table.add('1:a1', 'a', record), table.add('1:a2', 'a', record)];
  table.delete(first);
  expect([table.scopes, table.scope('a')?.size]).toEqual([1, 1]);
  table.delete(second);
  expect([table.scopes, table.scope('a'), table.size]).toEqual([0, undefined, 0]);
});
