import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ClaimStore } from '../../src/core/ports.ts';
import { CLAIM_CASES } from '../../src/testing/claim-cases.ts';
import { claimStoreSuite } from '../../src/testing/claim-store-suite.ts';
import type { FakeClock } from '../../src/testing/fake-clock.ts';
import { createWrongClaimStore, FAULTS } from './wrong-claim-stores.ts';

type Outcome = 'passed' | Error;

/** Runs the whole suite as a test runner does, and returns the outcome of each test. */
async function runSuite(create: (clock: FakeClock) => ClaimStore, histories: number): Promise<Map<string, Outcome>> {
  const tests: [string, () => Promise<void>][] = [];
  const runner = {
    describe: (_: string, define: () => void) => define(),
    it: (name: string, run: () => Promise<void>) => void tests.push([name, run]),
  };
  // A fixed seed, so that it is not a matter of luck whether the histories find a fault.
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
  it('passes for a correct store', async () => {
    expect(failed(await runSuite((clock) => createWrongClaimStore(clock), 200))).toEqual([]);
  });

  it('has a case for every wrong store, and a wrong store for every case', () => {
    const covered = CLAIM_CASES.map(({ name }) => variantOf(name)).filter((name) => !/^I\d/.test(name));
    expect(Object.keys(FAULTS).sort()).toEqual(covered.sort());
  });

  it.each(Object.keys(FAULTS))('%s fails its case and the random histories', async (variant) => {
    const failures = failed(await runSuite((clock) => createWrongClaimStore(clock, FAULTS[variant]), 300));
    expect(failures.map(variantOf)).toContain(variant);
    expect(failures.filter((name) => name.startsWith('replies as the naive model does'))).toHaveLength(1);
  });

  it('a store whose begin is not atomic fails the races', async () => {
    const failures = failed(
      await runSuite((clock) => {
        const inner = createWrongClaimStore(clock);
        return {
          ...inner,
          synchronous: false,
          // It reads, waits, and replies by what it has read. So all simultaneous begins see an empty store.
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
    expect(failures.filter((name) => name.startsWith('I5'))).toHaveLength(1);
  });
});
