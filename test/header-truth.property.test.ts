import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Decision } from '../src/core/decision.ts';
import { createMemoryStore } from '../src/stores/memory/store.ts';
import { createArbitraries, type History } from '../src/testing/arbitraries.ts';
import { replay, type World } from './support/histories.ts';

const HISTORIES = 3_000;

/** Spends until the first rejection that waiting can help; undefined where there is none. */
function rejectionOf(
  { subject, planOf }: World<Decision>,
  account: string,
  route: string,
  plan: ReturnType<typeof planOf>,
): Decision | undefined {
  for (let tries = 0; tries < 64; tries++) {
    const decision = subject.consume(account, route, plan, 1);
    if (!decision.accepted) return decision.impossible ? undefined : decision;
  }
  return undefined;
}

describe('x-ratelimit-reset and retry-after', () => {
  it(`S7: tell the truth to the second after ${HISTORIES} random histories`, { timeout: 60_000 }, () => {
    let checked = 0;
    const tellsTheTruth = (history: History): void => {
      const world = replay<Decision>(history, {
        create: (clock) => createMemoryStore({ clock, maxKeys: 64 }),
        remembersWhatIsOver: false,
        compare: () => {},
      });
      for (const account of ['a', 'b']) {
        for (const route of ['r', 's']) {
          const plan = world.planOf(route);
          const rejection = rejectionOf(world, account, route, plan);
          if (rejection?.shown === undefined) continue;
          const { limit, durationMs, resetMs } = rejection.shown;
          const seconds = Math.ceil(resetMs / 1000);
          expect(seconds).toBeGreaterThan(0);

          world.clock.advance((seconds - 1) * 1000);
          const tooEarly = world.subject.consume(account, route, plan, 1);
          expect(tooEarly).toMatchObject({ accepted: false, shown: { limit, durationMs } });

          world.clock.advance(1000);
          const onTime = world.subject.consume(account, route, plan, 1);
          const rejectedBy = onTime.accepted ? undefined : `${onTime.shown?.limit}:${onTime.shown?.durationMs}`;
          expect(rejectedBy).not.toBe(`${limit}:${durationMs}`);
          // Only a window that comes later in the plan may still be in the way.
          if (!onTime.accepted) expect(onTime.trace.length).toBeGreaterThan(rejection.trace.length);
          checked++;
        }
      }
    };
    fc.assert(fc.property(createArbitraries(fc).history, tellsTheTruth), { numRuns: HISTORIES });
    expect(checked).toBeGreaterThan(HISTORIES / 2);
  });
});
