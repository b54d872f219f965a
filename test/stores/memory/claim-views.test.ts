import { expect, it } from 'vitest';
import type { ClaimRecord } from '../../../src/core/claim.ts';
import { viewOf } from '../../../src/stores/memory/claim-views.ts';

it('S15: only a claim in progress has a lease, also after the clock was set back', () => {
  const record = { leaseUntil: 1_000, keptUntil: 9_000 } as ClaimRecord;
  expect(viewOf({ ...record, state: 'in_progress' }, 400)).toMatchObject({ leaseMs: 600, keptMs: 8_600 });
  expect(viewOf({ ...record, state: 'in_progress' }, 1_400).leaseMs).toBe(0);
  expect(viewOf({ ...record, state: 'completed' }, 400).leaseMs).toBe(0);
});
