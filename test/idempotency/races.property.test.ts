import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import type { OnOrphan } from '../../src/idempotency/index.ts';
import { type End, play, stories } from '../support/owners.ts';

const RUNS = Number(process.env.RACES ?? randomRuns(120));
const TIMEOUT_MS = 60_000 + RUNS * 200;

const property = (policy: OnOrphan, check: (end: End) => void): Promise<void> =>
  fc.assert(
    fc.asyncProperty(stories, async (owners) => check(await play(owners, policy))),
    { numRuns: RUNS },
  );

/** Holds for every policy. */
function nothingIsStuck({ alive, retry }: End): void {
  for (const owner of [...alive, retry]) {
    // P4: every owner got an answer, and nothing is still running.
    expect(owner.result ?? owner.thrown).toBeDefined();
    expect([owner.idempotency.held, owner.idempotency.pending, owner.time.waiting]).toEqual([0, 0, 0]);
  }
}

function oneResult({ owners, retry }: End): void {
  const outcomes = [...owners, retry].map(({ outcome }) => outcome).filter((outcome) => outcome !== undefined);
  expect(new Set(outcomes).size).toBeLessThanOrEqual(1);
}

function oneRequest({ owners, effects, retry }: End): void {
  const all = [...owners, retry];
  const requests = all
    .filter(({ name, outcome }) => outcome !== undefined || effects.includes(name))
    .map(({ story }) => story.request);
  expect(new Set(requests).size).toBeLessThanOrEqual(1);
}

const reasonOf = ({ result }: End['retry']): string | undefined =>
  result?.kind === 'refused' ? result.reason : undefined;

describe('up to four owners on a connection that loses, delays and repeats commands; some owners stall or die', {
  timeout: TIMEOUT_MS,
}, () => {
  it('reject: P1 at most one effect, P2 one result, P3 one request, P4 nothing stuck', async () => {
    await property('reject', (end) => {
      expect(end.effects.length).toBeLessThanOrEqual(1);
      oneResult(end);
      oneRequest(end);
      nothingIsStuck(end);
      // Only the death of an owner makes an orphan.
      if (reasonOf(end.retry) === 'orphan') expect(end.alive.length).toBeLessThan(end.owners.length);
      else if (reasonOf(end.retry) !== 'mismatch') expect(end.retry.outcome).toBeDefined();
    });
  });

  it('reexecute: P2, P3, P4; no request is refused as an orphan', async () => {
    await property('reexecute', (end) => {
      oneResult(end);
      oneRequest(end);
      nothingIsStuck(end);
      if (reasonOf(end.retry) !== 'mismatch') expect(end.retry.outcome).toBeDefined();
    });
  });

  it('reconcile, with a provider that checks fencing tokens: P1, P2, P3, P4', async () => {
    await property('reconcile', (end) => {
      expect(end.effects.length).toBeLessThanOrEqual(1);
      oneResult(end);
      oneRequest(end);
      nothingIsStuck(end);
      if (reasonOf(end.retry) !== 'mismatch') expect(end.retry.outcome).toBeDefined();
    });
  });
});
