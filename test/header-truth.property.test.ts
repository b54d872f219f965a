import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import type { Decision } from '../src/core/decision.ts';
import { rateLimitFields } from '../src/http/rate-limit-fields.ts';
import { createMemoryStore } from '../src/stores/memory/limits.ts';
import { type Command, createArbitraries } from '../src/testing/arbitraries.ts';
import { replay, type World } from './support/histories.ts';

const HISTORIES = Number(process.env.HEADGATE_HISTORIES ?? randomRuns(800));
const PAIRS = ['a', 'b'].flatMap((account) => ['r', 's'].map((route) => ({ account, route })));

type Spend = () => Decision;

const stepBackMs = (command: Command): number => (command.type === 'step-back' ? command.ms : 0);

/** Spends until the first rejection for which waiting helps. Returns undefined without such a rejection. */
function spendUntilRejected(spend: Spend): Decision | undefined {
  for (let tries = 0; tries < 64; tries++) {
    const decision = spend();
    if (!decision.accepted) return decision.impossible ? undefined : decision;
    if ('retry-after' in rateLimitFields(decision)) expect.fail('an accepted request shows retry-after');
  }
  return undefined;
}

/** Waits one second less than the header of the rejection says, then exactly that long. */
function expectTrueHeaders(rejection: Decision, spend: Spend, { clock }: World<Decision>): void {
  const fields = rateLimitFields(rejection);
  const seconds = Number(fields['retry-after']);
  expect(seconds).toBeGreaterThan(0);
  expect(fields['x-ratelimit-reset']).toBe(fields['retry-after']);

  clock.advance((seconds - 1) * 1000);
  const tooEarly = spend();
  expect(tooEarly.accepted).toBe(false);
  expect(tooEarly.trace.length).toBe(rejection.trace.length);

  clock.advance(1000);
  const onTime = spend();
  // That window is over; only a later window of the plan may still reject.
  if (!onTime.accepted) expect(onTime.trace.length).toBeGreaterThan(rejection.trace.length);
}

describe('x-ratelimit-reset and retry-after', () => {
  it(`S7, S8: are exact to the second after ${HISTORIES} random histories`, () => {
    let checked = 0;
    const headersAreTrue = fc.property(createArbitraries(fc).history, (history) => {
      const world = replay<Decision>(history, {
        create: (clock) => createMemoryStore({ clock, maxKeys: 64 }),
        remembersWhatIsOver: false,
        compare: () => {},
      });
      // While the clock is set back, a window whose start it has not reached counts as over, and afterwards it counts
      // again (S15). From then on every header is exact.
      world.clock.advance(history.commands.reduce((sum, command) => sum + stepBackMs(command), 0));
      for (const { account, route } of PAIRS) {
        world.subject.unblock?.({ account });
        world.subject.unblock?.({ account, route });
        const spend: Spend = () => world.subject.consume(account, route, world.windowSetOf(route), 1);
        const rejection = spendUntilRejected(spend);
        if (rejection === undefined) continue;
        expectTrueHeaders(rejection, spend, world);
        checked++;
      }
    });
    fc.assert(headersAreTrue, { numRuns: HISTORIES });
    expect(checked).toBeGreaterThan(HISTORIES / 2);
  });
});
