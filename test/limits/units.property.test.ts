/** S33: random histories with three units against the naive model, each unit by itself, joined by all or nothing. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { it } from 'vitest';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { hasWindows, runUnitHistory, unitHistory } from '../support/unit-histories.ts';

it('S33: decides as the naive model does', async () => {
  await fc.assert(
    fc.asyncProperty(unitHistory.filter(hasWindows), async (history) => {
      const clock = createFakeClock(1_000_000);
      await runUnitHistory(createMemoryStore({ clock }), clock, history);
    }),
    { numRuns: NIGHTLY ? 10_000 : 250 },
  );
});
