import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { expectSame } from 'headgate-testbed/same';
import { describe, it } from 'vitest';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { createArbitraries, type History } from '../../../src/testing/arbitraries.ts';
import { keptHistories, replay } from '../../support/histories.ts';

const HISTORIES = Number(process.env.HEADGATE_HISTORIES ?? randomRuns(2_000));
const LONG_HISTORIES = Math.min(HISTORIES, 500);

function live(history: History, maxKeys = 64): void {
  replay(history, {
    create: (clock) => createMemoryStore({ clock, maxKeys }),
    remembersWhatIsOver: false,
    compare: expectSame,
  });
}

describe('memory store', () => {
  it(`S1-S14: decides as the naive model in ${HISTORIES} random histories`, () => {
    fc.assert(
      fc.property(createArbitraries(fc).history, (history) => live(history)),
      { numRuns: HISTORIES },
    );
  });

  it('S1: decides as the model with so many routes that accounts have a map, and enough calls to be swept', () => {
    const routes = ['r', 's', ...Array.from({ length: 12 }, (_, i) => `route ${i}`)];
    const { history } = createArbitraries(fc, { routes, maxCommands: 300 });
    fc.assert(
      fc.property(history, (drawn) => live(drawn)),
      { numRuns: LONG_HISTORIES },
    );
  });

  it('S1: decides as the model if it is so large that it has several shards', () => {
    const names = { accounts: ['a', 'b', '', 'acct_01', 'acct_02', 'x'.repeat(100)], maxCommands: 120 };
    const { history } = createArbitraries(fc, names);
    fc.assert(
      fc.property(history, (drawn) => live(drawn, 200_000)),
      { numRuns: Math.min(HISTORIES, 100) },
    );
  });

  it.each(keptHistories())('decides as the model in a recorded history: $name', ({ history }) => live(history));
});
