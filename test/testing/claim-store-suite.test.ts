import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClaimStore } from '../../src/core/ports.ts';
import { CLAIM_CASES } from '../../src/testing/claim-cases.ts';
import { claimStoreSuite } from '../../src/testing/claim-store-suite.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import { createWrongClaimStore, FAULTS } from './wrong-claim-stores.ts';

type Outcome = 'passed' | Error;

/** Runs the whole suite as a runner would, and tells how each of its tests went. */
async function judge(create: (clock: FakeClock) => ClaimStore, histories: number): Promise<Map<string, Outcome>> {
  const tests: [string, () => Promise<void>][] = [];
  const runner = {
    describe: (_: string, define: () => void) => define(),
    it: (name: string, run: () => Promise<void>) => void tests.push([name, run]),
  };
  // One seed: whether the histories find a fault must not be a matter of luck.
  fc.configureGlobal({ seed: 4 });
  try {
    claimStoreSuite(runner, fc, { name: 'x', create, histories });
    const outcomes = new Map<string, Outcome>();
    for (const [name, run] of tests) {
      const outcome = await run().then(
        () => 'passed' as const,
        (error: Error) => error,
      );
      outcomes.set(name, outcome);
    }
    return outcomes;
  } finally {
    fc.resetConfigureGlobal();
  }
}

const failed = (outcomes: Map<string, Outcome>): string[] =>
  [...outcomes].filter(([, outcome]) => outcome !== 'passed').map(([name]) => name);
const variantOf = (name: string): string => name.split(': ')[0] as string;

describe('the claim store suite', () => {
  it('finds nothing in a right store', async () => {
    expect(failed(await judge((clock) => createWrongClaimStore(clock), 200))).toEqual([]);
  });

  it('has a story for every wrong store, and a wrong store for every story', () => {
    const told = CLAIM_CASES.map(({ name }) => variantOf(name)).filter((name) => !/^I\d/.test(name));
    expect(Object.keys(FAULTS).sort()).toEqual(told.sort());
  });

  it.each(Object.keys(FAULTS))('%s is caught by its story and by the histories', async (variant) => {
    const caughtBy = failed(await judge((clock) => createWrongClaimStore(clock, FAULTS[variant]), 300));
    expect(caughtBy.map(variantOf)).toContain(variant);
    expect(caughtBy.filter((name) => name.startsWith('answers as the naive model'))).toHaveLength(1);
  });

  it('a store that answers before it has looked is caught by the races', async () => {
    const caughtBy = failed(
      await judge((clock) => {
        const inner = createWrongClaimStore(clock);
        return {
          ...inner,
          synchronous: false,
          // Reads, waits, then answers by what it had read: all that begin at once are the first.
          async begin(id, command) {
            const before = await inner.inspect(id);
            const reply = await inner.begin(id, command);
            return before === undefined
              ? { kind: 'claimed', generation: 1, inherited: false, dispatched: command.dispatch }
              : reply;
          },
        };
      }, 1),
    );
    expect(caughtBy.filter((name) => name.startsWith('I5'))).toHaveLength(1);
  });
});
