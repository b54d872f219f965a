/** S28, S29, S31, S33: groups, units, lanes and requests in flight together, judged by each rule by itself. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { it } from 'vitest';
import { createLimiter } from '../../src/limits/limiter.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { expectJoined, joinedHistories, joinedLimits } from '../support/joined-histories.ts';

const RUNS = NIGHTLY ? 2_000 : 40;

it('a request fits everything or changes nothing, whatever was settled, refunded or released', async () => {
  await fc.assert(
    fc.asyncProperty(joinedHistories, async (history) => {
      const clock = createFakeClock(1_000_000);
      const limits = joinedLimits(history);
      const limiter = createLimiter({ store: createMemoryStore({ clock }), limits, validate: false });
      await expectJoined(history, limiter, clock, 3);
      await limiter.close();
    }),
    { numRuns: RUNS },
  );
});
