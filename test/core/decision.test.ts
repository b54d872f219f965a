import { describe, expect, it } from 'vitest';
import { charge, Decision, evaluate, FITS, windowStatus } from '../../src/core/decision.ts';
import { parseLimit } from '../../src/core/limit.ts';
import { NEVER } from '../../src/core/window.ts';
import { createWindowSet, type NamedWindow } from '../../src/core/window-set.ts';
import { windowSetFrom } from '../support/window-set.ts';

const NOW = 10_000;
const windowSet = windowSetFrom(['3/1s', '5/1m'], ['4/1s', '9/1h']);

/** Counters of the plan's windows with these counts. All instances started 100 ms ago. */
const started = (...counts: number[]): Float64Array => Float64Array.from(counts.flatMap((count) => [NOW - 100, count]));

function decide(counters: Float64Array, cost: number): Decision {
  const rejectedBy = evaluate(windowSet, counters, 0, cost, NOW);
  if (rejectedBy === FITS) charge(windowSet, counters, 0, cost, NOW);
  return new Decision('a', 'r', windowSet, cost, NOW, rejectedBy, counters.slice());
}

describe('evaluate and charge', () => {
  it.each([
    { counts: [2, 4, 3, 8], by: FITS },
    { counts: [3, 5, 4, 9], by: 0 },
    { counts: [2, 5, 4, 9], by: 1 },
    { counts: [2, 4, 4, 9], by: 2 },
    { counts: [2, 4, 3, 9], by: 3 },
  ])('S2: with $counts counted, the first window without room is $by', ({ counts, by }) => {
    expect(evaluate(windowSet, started(...counts), 0, 1, NOW)).toBe(by);
  });

  it('S5: evaluate changes nothing', () => {
    for (const cost of [1, 9]) {
      const counters = started(1, 1, 1, 1);
      evaluate(windowSet, counters, 0, cost, NOW);
      expect(counters).toEqual(started(1, 1, 1, 1));
    }
  });

  it('S5: charge counts in every window, and returns whether an instance was started', () => {
    const counters = started(1, 1, 1, 1);
    expect(charge(windowSet, counters, 0, 2, NOW)).toBe(false);
    expect(counters).toEqual(started(3, 3, 3, 3));
    counters[4] = NEVER;
    expect(charge(windowSet, counters, 0, 1, NOW)).toBe(true);
    expect([...counters]).toEqual([NOW - 100, 4, NOW - 100, 4, NOW, 1, NOW - 100, 4]);
  });

  it('only the counters of the plan are read and written', () => {
    const two = windowSetFrom([], ['5/1s', '9/1h']);
    const counters = Float64Array.of(-7, NOW - 100, 4, NOW - 100, 8, -7);
    expect(evaluate(two, counters, 1, 1, NOW)).toBe(evaluate(two, counters.slice(1), 0, 1, NOW));
    charge(two, counters, 1, 1, NOW);
    expect([...counters]).toEqual([-7, NOW - 100, 5, NOW - 100, 9, -7]);
  });

  it('S6: without windows every cost fits', () => {
    expect(evaluate(windowSetFrom([]), new Float64Array(0), 0, 1, NOW)).toBe(FITS);
    expect(charge(windowSetFrom([]), new Float64Array(0), 0, 1, NOW)).toBe(false);
  });
});

describe('decisions', () => {
  it('S6, S7: an accepted decision shows the last window of the plan, after the charge', () => {
    const decision = decide(started(0, 0, 0, 0), 2);
    expect(decision).toMatchObject({
      accepted: true,
      account: 'a',
      route: 'r',
      cost: 2,
      decidedAt: NOW,
      impossible: false,
    });
    expect(decision.shown).toEqual({
      limit: 'all-methods',
      max: 9,
      remaining: 7,
      resetMs: 3_599_900,
      durationMs: 3_600_000,
      startedAt: NOW - 100,
    });
    expect(decision.trace.map(({ remaining }) => remaining)).toEqual([1, 3, 2, 7]);
  });

  it('S6: without All methods, the last window is the longest of the route', () => {
    const own = windowSetFrom(['3/1s', '5/1m']);
    const counters = Float64Array.of(NOW, 1, NOW, 1);
    expect(new Decision('a', 'r', own, 1, NOW, FITS, counters).shown).toMatchObject({ limit: 'route', max: 5 });
  });

  it("S6: a plan can show the one with the least left, of the last window of each limit; of equal ones the route's", () => {
    const route = parseLimit(['1/1s', '5/1m']);
    const shownWith = (allMethods: string[], ...counts: number[]) => {
      const windowSet = createWindowSet(route, parseLimit(allMethods), 'account', 'least');
      return new Decision('a', 'r', windowSet, 1, NOW, FITS, started(...counts)).shown;
    };
    expect(shownWith(['9/1h'], 1, 2, 2)).toMatchObject({ limit: 'route', max: 5, remaining: 3 });
    expect(shownWith(['9/1h'], 1, 2, 6)).toMatchObject({ limit: 'route', max: 5, remaining: 3 });
    expect(shownWith(['9/1h'], 1, 2, 7)).toMatchObject({ limit: 'all-methods', max: 9, remaining: 2 });
    expect(shownWith([], 1, 2)).toMatchObject({ limit: 'route', max: 5, remaining: 3 });
    const own = createWindowSet([], parseLimit(['9/1h']), 'account', 'least');
    expect(new Decision('a', 'r', own, 1, NOW, FITS, started(7)).shown).toMatchObject({ limit: 'all-methods' });
    const rejected = createWindowSet(route, parseLimit(['9/1h']), 'account', 'least');
    expect(new Decision('a', 'r', rejected, 1, NOW, 2, started(0, 0, 9)).shown).toMatchObject({ remaining: 0, max: 9 });
  });

  it('S2, S6: a rejected decision shows the window that rejected, and the trace ends with it', () => {
    const decision = decide(started(0, 5, 0, 0), 1);
    expect([decision.accepted, decision.impossible]).toEqual([false, false]);
    expect(decision.shown).toMatchObject({ limit: 'route', max: 5, remaining: 0, resetMs: 59_900 });
    expect(decision.trace.map(({ max }) => max)).toEqual([3, 5]);
    expect(decision.windowSet).toBe(windowSet);
  });

  it('S6: without a plan nothing is shown', () => {
    const decision = new Decision('a', 'r', windowSetFrom([]), 1, NOW, FITS, []);
    expect([decision.accepted, decision.shown, decision.trace]).toEqual([true, undefined, []]);
  });

  it('S9: max 0 rejects, and its reset is its whole duration, with or without an instance', () => {
    const zero = windowSetFrom(['0/1s']);
    for (const counters of [[NEVER, NEVER], [NOW - 100, 4], []]) {
      const decision = new Decision('a', 'r', zero, 1, NOW, 0, counters);
      expect(decision.shown).toMatchObject({ max: 0, remaining: 0, resetMs: 1000 });
      expect(decision.impossible).toBe(true);
    }
  });

  it('S11: a cost above the max of the window that rejected can never fit', () => {
    expect(decide(started(0, 0, 0, 0), 4)).toMatchObject({ accepted: false, impossible: true });
    expect(decide(started(1, 0, 0, 0), 3)).toMatchObject({ accepted: false, impossible: false });
  });

  it('S11: if the window that rejected has no instance, all of it remains and its reset is its whole duration', () => {
    const { shown } = decide(
      Float64Array.from({ length: 8 }, () => NEVER),
      4,
    );
    expect(shown).toEqual({
      limit: 'route',
      max: 3,
      remaining: 3,
      resetMs: 1000,
      durationMs: 1000,
      startedAt: undefined,
    });
  });

  it('S13: only an accepted decision can be settled, and only once', () => {
    const [accepted, rejected] = [decide(started(0, 0, 0, 0), 1), decide(started(3, 0, 0, 0), 1)];
    expect([accepted.takeCharge(), accepted.takeCharge(), rejected.takeCharge()]).toEqual([true, false, false]);
    // A store returns it if it has changed nothing.
    accepted.returnCharge();
    expect(accepted.takeCharge()).toBe(true);
  });

  it('S17: a decision made by a store is not degraded', () => {
    expect(decide(started(0, 0, 0, 0), 1).degraded).toBe(false);
  });

  it('S19: shown and trace are copies', () => {
    const decision = decide(started(0, 0, 0, 0), 1);
    Object.assign(decision.trace[0] as object, { remaining: 99 });
    expect(decision.trace[0]?.remaining).toBe(2);
  });

  it('S19: as JSON it has all readable fields, and nothing of the store', () => {
    const decision = decide(started(3, 0, 0, 0), 1);
    const { trace, shown } = decision;
    expect(JSON.parse(JSON.stringify(decision))).toEqual({
      accepted: false,
      degraded: false,
      leased: false,
      account: 'a',
      route: 'r',
      cost: 1,
      decidedAt: NOW,
      shown,
      trace,
      impossible: false,
    });
  });
});

describe('window status', () => {
  const status = (max: number, counters: ArrayLike<number>): unknown =>
    windowStatus({ limit: 'route', max, durationMs: 1000 } satisfies NamedWindow, counters, 0, NOW, 0);

  it('S7: remaining is never negative, even if the max was lowered below the count (S10)', () => {
    expect(status(2, [NOW - 100, 5])).toMatchObject({ remaining: 0, resetMs: 900 });
  });

  it('S7: the reset is never 0 while the instance is active', () => {
    expect(status(2, [NOW - 999, 1])).toMatchObject({ remaining: 1, resetMs: 1, startedAt: NOW - 999 });
    expect(status(2, [NOW - 1000, 1])).toMatchObject({ remaining: 2, resetMs: 0, startedAt: undefined });
  });

  it('S14: a peek at a window without an instance has reset 0, even with max 0', () => {
    expect(status(0, [])).toMatchObject({ remaining: 0, resetMs: 0, startedAt: undefined });
    expect(status(0, [NOW, 1])).toMatchObject({ remaining: 0, resetMs: 1000, startedAt: NOW });
  });
});
