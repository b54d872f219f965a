/** S27: a candidate that equals the limits in force never differs from them, whatever happens. */

import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { expect, it } from 'vitest';
import type { Decision } from '../../src/core/decision.ts';
import type { LimitInput } from '../../src/core/limit.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { WindowSets } from '../../src/limits/window-sets.ts';
import { type LimiterWithShadow, withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock, type FakeClock } from '../../src/testing/fake-clock.ts';

const LIMITS = {
  allMethods: { windows: ['3/20ms', '5/50ms'], scope: 'account' as const },
  routes: { a: ['2/10ms'] },
  lanes: { bulk: 0.5 },
};
const RUNS = randomRuns(300);
/** Accounts share nothing, so a run has a history of each. */
const ACCOUNTS = Array.from({ length: 10 }, (_, i) => `acc_${i}`);

const account = fc.constantFrom(...ACCOUNTS);
const route = fc.constantFrom('a', 'b');
const lane = fc.constantFrom(undefined, 'bulk');
/** To the edges of windows, beside them, anywhere, far away, and back. */
const leap = fc.oneof(
  fc.constantFrom(9, 10, 11, 19, 20, 21, 49, 50, 51, 10_000, -1, -20),
  fc.integer({ min: 1, max: 30 }),
);
const windows = fc.constantFrom<LimitInput | 'recommended'>(
  ['1/20ms'],
  ['9/20ms', '2/50ms'],
  ['4/30ms'],
  'recommended',
);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('consume' as const),
      account,
      route,
      lane,
      cost: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: leap }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(20), cost: fc.nat(4) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reset' as const), account }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('adjust' as const), account, windows }) },
);

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

interface World {
  readonly limiter: LimiterWithShadow;
  readonly limits: WindowSets;
  readonly clock: FakeClock;
  readonly decisions: Decision[];
}

async function run(each: Step, { limiter, limits, clock, decisions }: World): Promise<void> {
  if (each.do === 'consume') decisions.push(limiter.consumeSync(each));
  else if (each.do === 'reset') await limiter.reset({ account: each.account });
  else if (each.do === 'settle') {
    const decision = decisions.at(-1 - each.which);
    if (decision !== undefined) await limiter.settle(decision, each.cost);
  } else {
    // The candidate decides at the same time as the limiter, by the same limits.
    await limiter.shadow.idle();
    if (each.do === 'advance') clock.advance(each.ms);
    else limits.adjust({ account: each.account }, each.windows);
  }
}

it(`S27: in ${RUNS * ACCOUNTS.length} histories only one of the two never rejects`, async () => {
  let both = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 60, maxLength: 120 }), async (steps) => {
      const clock = createFakeClock(1_000_000);
      const store = () => createMemoryStore({ clock });
      const limits = new WindowSets(LIMITS);
      const current = createLimiter({ store: store(), limits, validate: false });
      const limiter = withShadow(current, { limits, store: store() });
      const decisions: Decision[] = [];
      for (const each of steps) await run(each, { limiter, limits, clock, decisions });
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
