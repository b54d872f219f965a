import type { ClaimRecord } from '../../src/core/claim.ts';

/** A claim that attempt `a` holds for the request `f` at `now`. Its lease has not expired, and it is not dispatched. */
export function runningClaim(now: number): ClaimRecord {
  return {
    state: 'in_progress',
    fingerprint: 'f',
    owner: 'a',
    generation: 3,
    dispatched: false,
    inherited: false,
    leaseUntil: now + 400,
    keptUntil: now + 20_000,
    result: undefined,
  };
}
