/** S27: a candidate that equals the limits in force never differs from them, whatever happens. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Decision } from '../../src/core/decision.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const LIMITS = { allMethods: { windows: ['3/20ms', '5/50ms'], scope: 'account' as const }, routes: { a: ['2/10ms'] } };
const RUNS = 1_000;
/** Accounts share nothing, so a run has a history of each. */
const ACCOUNTS = Array.from({ length: 10 }, (_, i) => `acc_${i}`);

const account = fc.constantFrom(...ACCOUNTS);
const route = fc.constantFrom('a', 'b');
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('consume' as const), account, route, cost: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 30 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(20), cost: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reset' as const), account }) },
);

it(`S27: in ${RUNS * ACCOUNTS.length} histories only one of the two never rejects`, async () => {
  let both = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 120 }), async (steps) => {
      const clock = createFakeClock();
      const store = () => createMemoryStore({ clock });
      const current = createLimiter({ store: store(), limits: LIMITS, validate: false });
      const limiter = withShadow(current, { limits: LIMITS, store: store() });
      const decisions: Decision[] = [];
      for (const each of steps) {
        if (each.do === 'consume') decisions.push(limiter.consumeSync(each));
        else if (each.do === 'reset') await limiter.reset({ account: each.account });
        else if (each.do === 'settle') {
          const decision = decisions.at(-1 - each.which);
          if (decision !== undefined) await limiter.settle(decision, each.cost);
        } else {
          // The candidate decides at the same time as the limiter.
          await limiter.shadow.idle();
          clock.advance(each.ms);
        }
      }
      await limiter.shadow.idle();
      const { total } = limiter.shadow.figures();
      expect(total).toMatchObject({ onlyCandidate: 0, onlyCurrent: 0, dropped: 0, failed: 0 });
      expect(total.both + total.none).toBe(decisions.length);
      both += total.both;
    }),
    { numRuns: RUNS },
  );
  expect(both).toBeGreaterThan(RUNS / 10);
});
