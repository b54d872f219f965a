import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { expectSame } from 'headgate-testbed/same';
import { describe, it } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { charge, Decision, evaluate, FITS, type WindowStatus, windowStatus } from '../../src/core/decision.ts';
import type { ResetTarget } from '../../src/core/ports.ts';
import { type Counters, NEVER, settleWindow } from '../../src/core/window.ts';
import type { NamedWindow, WindowSet } from '../../src/core/window-set.ts';
import { createArbitraries, type History } from '../../src/testing/arbitraries.ts';
import { keptHistories, replay, type Subject } from '../support/histories.ts';

const HISTORIES = Number(process.env.HEADGATE_HISTORIES ?? randomRuns(1_500));

/**
 * The simplest store around the pure rule: two numbers per window, found by all that identifies it, and never deleted.
 */
class BareStore implements Subject<Decision> {
  readonly #counters = new Map<string, { account: string; route: string | undefined; pair: Counters }>();

  constructor(readonly clock: Clock) {}

  consume(account: string, route: string, windowSet: WindowSet, cost: number): Decision {
    const pairs = windowSet.windows.map((window) => this.#pair(account, route, windowSet, window));
    // Three numbers before the windows that belong to other records.
    const counters = Float64Array.of(7, 7, 7, ...pairs.flatMap((pair) => [...pair]));
    const before = counters.slice();
    const now = this.clock.now();
    const rejectedBy = evaluate(windowSet, counters, 3, cost, now);
    expectSame(counters, before);
    if (rejectedBy === FITS) {
      charge(windowSet, counters, 3, cost, now);
      for (const [i, pair] of pairs.entries()) pair.set(counters.slice(3 + i * 2, 5 + i * 2));
    }
    expectSame(counters.slice(0, 3), before.slice(0, 3));
    return new Decision(account, route, windowSet, cost, now, rejectedBy, counters.slice(3));
  }

  peek(account: string, route: string, windowSet: WindowSet): WindowStatus[] {
    return windowSet.windows.map((window) => {
      return windowStatus(window, this.#pair(account, route, windowSet, window), 0, this.clock.now(), 0);
    });
  }

  settle(decision: Decision, cost: number): boolean {
    if (!decision.takeCharge()) return false;
    const { account, route, windowSet, trace } = decision;
    const change = cost - decision.cost;
    const taken = windowSet.windows.map((window, i) => {
      const pair = this.#pair(account, route, windowSet, window);
      return settleWindow(pair, 0, window.durationMs, trace[i]?.startedAt as number, change, this.clock.now());
    });
    if (!taken.includes(true)) decision.returnCharge();
    return taken.includes(true);
  }

  reset({ account, route }: ResetTarget): void {
    for (const [id, counter] of this.#counters) {
      const isNamed = (account ?? counter.account) === counter.account && (route ?? counter.route) === counter.route;
      if (isNamed) this.#counters.delete(id);
    }
  }

  #pair(account: string, route: string, windowSet: WindowSet, { limit, durationMs }: NamedWindow): Counters {
    const owner = limit === 'all-methods' && windowSet.allMethodsScope === 'account' ? undefined : route;
    const id = JSON.stringify([account, owner ?? null, limit, durationMs]);
    const counter = this.#counters.get(id) ?? { account, route: owner, pair: Float64Array.of(NEVER, 0) };
    this.#counters.set(id, counter);
    return counter.pair;
  }
}

function live(history: History): void {
  replay(history, {
    create: (clock) => new BareStore(clock),
    remembersWhatIsOver: true,
    compare: expectSame,
  });
}

describe('evaluate and charge', () => {
  it(`S1-S14: decide as the naive model in ${HISTORIES} random histories, whatever the clock does`, () => {
    fc.assert(fc.property(createArbitraries(fc).history, live), { numRuns: HISTORIES });
  });

  it.each(keptHistories())('decide as the model in a recorded history: $name', ({ history }) => live(history));
});
