import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { createMemoryClaimStore } from '../../../src/stores/memory/claims.ts';
import { createFakeClock } from '../../../src/testing/fake-clock.ts';
import { Attempts, race } from '../../support/claim-attempts.ts';
import { judgeRace } from '../../support/claim-verdict.ts';
import { createWrongClaimStore, FAULTS } from '../../testing/wrong-claim-stores.ts';

const RUNS = Number(process.env.HEADGATE_HISTORIES ?? randomRuns(1_500));

describe('races of up to four owners, in memory', () => {
  it.each(['reject', 'reexecute', 'reconcile'] as const)(
    'I10: %s: one definitive result, and every attempt gets it',
    (onOrphan) =>
      fc.assert(
        fc.asyncProperty(race, fc.scheduler(), async ({ fates, lapses }, scheduler) => {
          const clock = createFakeClock(1_000_000);
          const attempts = new Attempts(createMemoryClaimStore({ clock, maxKeys: 10 }), clock, scheduler, onOrphan);
          await attempts.run(fates, lapses);
          await judgeRace(attempts);
        }),
        { numRuns: RUNS },
      ),
  );

  it.each([
    'W_NO_MARK',
    'W_LEASE_IS_TTL',
    'W_TAKEOVER_OF_DISPATCHED',
    'W_ABANDON_WITHOUT_OWNER',
    'W_BEGIN_CLEARS_MARK',
    'W_COMPLETE_OVERWRITES',
  ])('the races detect %s', async (variant) => {
    const property = fc.asyncProperty(race, fc.scheduler(), async ({ fates, lapses }, scheduler) => {
      const clock = createFakeClock(1_000_000);
      const onOrphan = variant === 'W_COMPLETE_OVERWRITES' ? 'reexecute' : 'reject';
      const attempts = new Attempts(createWrongClaimStore(clock, FAULTS[variant]), clock, scheduler, onOrphan);
      await attempts.run(fates, lapses);
      await judgeRace(attempts);
    });
    const { failed } = await fc.check(property, { numRuns: 5_000, seed: 4, endOnFailure: true });
    expect(failed).toBe(true);
  });
});
