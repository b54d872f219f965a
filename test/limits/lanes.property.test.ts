/** S28: random histories of requests with and without lanes, judged by the naive model. */
import fc from 'fast-check';
import { NIGHTLY } from 'headgate-testbed/nightly';
import { expect, it } from 'vitest';
import { shareOfMax } from '../../src/core/window-set.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { createSharedLimits } from '../../src/shared-limits/index.ts';
import { createMemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { expectLanes, laneHistories, limitsOf } from '../support/lane-histories.ts';

const RUNS = NIGHTLY ? 20_000 : 160;

it('S28: a lane is decided as if each max were its share, in the windows of everybody', async () => {
  await fc.assert(
    fc.asyncProperty(laneHistories(true), async (history) => {
      const clock = createFakeClock(1_000_000);
      const limiter = createLimiter({
        store: createMemoryStore({ clock }),
        limits: limitsOf(history),
        validate: false,
      });
      await expectLanes(history, { limiter, adjust: limiter.adjust.bind(limiter) }, clock);
    }),
    { numRuns: RUNS },
  );
});

it('S28: also with shared limits, whose changes move the share of a lane', async () => {
  await fc.assert(
    fc.asyncProperty(laneHistories(true), async (history) => {
      const clock = createFakeClock(1_000_000);
      const limits = createSharedLimits({ base: limitsOf(history), adjustments: createMemoryAdjustments() });
      await limits.ready();
      const limiter = createLimiter({ store: createMemoryStore({ clock }), limits, validate: false });
      const adjust = (target: object, windows: readonly string[]) =>
        limits.put(target, windows, { by: 'test', confirm: true });
      await expectLanes(history, { limiter, adjust }, clock);
      await limits.close();
    }),
    { numRuns: Math.ceil(RUNS / 8) },
  );
});

it('S28: a share of a max is rounded down as a person computes it, for any max', () => {
  fc.assert(
    fc.property(fc.nat(Number.MAX_SAFE_INTEGER), fc.integer({ min: 1, max: 10_000_000 }), (max, parts) => {
      expect(shareOfMax(max, parts / 1e7)).toBe(Number((BigInt(max) * BigInt(parts)) / 10_000_000n));
    }),
    { numRuns: RUNS * 10 },
  );
});
