import { expect, it } from 'vitest';
import type { AdjustmentState } from '../../src/core/adjustment.ts';
import { reconcile } from '../../src/shared-limits/lineage.ts';

it('a store with as many changes, which this version cannot read, has another history', () => {
  const known = { head: { version: 2, nonce: 'a' }, recent: [] };
  const state: AdjustmentState = { head: { version: 2, nonce: 'b' }, adjustments: [], recent: [] };
  const step = reconcile(known, { kind: 'all', now: 0, unreadable: 2, state });
  expect(step).toEqual({ kind: 'adopt', state, forked: true });
});
