import { expect } from 'vitest';
import type { Attempts } from './claim-attempts.ts';

/**
 * Checks that there is at most one effect if orphans are rejected (I9), one result for all (I10), and that the key is
 * not stuck.
 */
export async function judgeRace(attempts: Attempts): Promise<void> {
  const { effects, answers } = attempts.witness;
  if (attempts.onOrphan === 'reject') expect(effects.length).toBeLessThanOrEqual(1);
  expect(new Set(answers.map(({ value }) => value)).size).toBeLessThanOrEqual(1);
  const last = await attempts.retry();
  if (answers.length > 0) expect(last).toEqual({ kind: 'settled', result: answers[0] });
  else expect(['claimed', 'settled', attempts.onOrphan === 'reject' ? 'orphan' : 'claimed']).toContain(last.kind);
}
