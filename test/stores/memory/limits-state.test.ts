import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClockError } from '../../../src/base/errors.ts';
import type { Decision } from '../../../src/core/decision.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { memoryStoreAt1e6 as setUp } from '../../support/memory.ts';
import { windowSetFrom } from '../../support/window-set.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('memory store: peek, reset, clock, snapshots', () => {
  it('S14: a peek shows every window, even after one that would reject, and creates nothing', () => {
    const { store } = setUp();
    const windowSet = windowSetFrom(['0/1s', '2/1m'], ['5/1h']);
    expect(store.peek('a', 'r', windowSet)).toEqual([
      { limit: 'route', max: 0, remaining: 0, resetMs: 0, durationMs: 1000, startedAt: undefined },
      { limit: 'route', max: 2, remaining: 2, resetMs: 0, durationMs: 60_000, startedAt: undefined },
      { limit: 'all-methods', max: 5, remaining: 5, resetMs: 0, durationMs: 3_600_000, startedAt: undefined },
    ]);
    expect(store.stats().keys).toBe(0);
  });

  it('S14: a peek with another plan than the record has changes nothing', () => {
    const { store } = setUp();
    store.consume('a', 'r', windowSetFrom(['2/1m']), 2);
    expect(store.peek('a', 'r', windowSetFrom(['2/1h']))).toMatchObject([{ remaining: 2, startedAt: undefined }]);
    expect(store.consume('a', 'r', windowSetFrom(['2/1m']), 1).accepted).toBe(false);
  });

  it('S14: reset deletes a pair, an account, a route of every account, or everything', () => {
    const windowSet = windowSetFrom(['1/1h']);
    const pairs = ['a:r', 'a:s', 'b:r', 'b:s'];
    const targets = [{ account: 'a', route: 'r' }, { account: 'a' }, { route: 'r' }, {}, { account: 'x', route: 'y' }];
    const forgotten = targets.map((target) => {
      const { store } = setUp();
      for (const pair of pairs) store.consume(pair[0] as string, pair[2] as string, windowSet, 1);
      store.reset(target);
      return pairs.filter((pair) => store.consume(pair[0] as string, pair[2] as string, windowSet, 1).accepted);
    });
    expect(forgotten).toEqual([['a:r'], ['a:r', 'a:s'], ['a:r', 'b:r'], pairs, []]);
  });

  it('S14: resetting a pair does not reset the shared counter; resetting the account does', () => {
    const { store } = setUp();
    const windowSet = windowSetFrom(['2/1h'], ['2/1h'], 'account');
    store.consume('a', 'r', windowSet, 2);
    store.reset({ account: 'a', route: 'r' });
    expect(store.peek('a', 'r', windowSet)).toMatchObject([{ remaining: 2 }, { remaining: 0 }]);
    store.reset({ route: 'r' });
    expect(store.peek('a', 'r', windowSet)).toMatchObject([{ remaining: 2 }, { remaining: 0 }]);
    store.reset({ account: 'a' });
    expect(store.peek('a', 'r', windowSet)).toMatchObject([{ remaining: 2 }, { remaining: 2 }]);
  });

  it('S15: a step of the wall clock does not change the default clock', () => {
    const store = createMemoryStore();
    const windowSet = windowSetFrom(['2/1h']);
    const { decidedAt } = store.consume('a', 'r', windowSet, 1);
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 86_400_000);
    const later = store.consume('a', 'r', windowSet, 1);
    expect(later.shown?.startedAt).toBe(decidedAt);
    expect(later.decidedAt - decidedAt).toBeLessThan(60_000);
    expect(later.decidedAt).toBeGreaterThanOrEqual(decidedAt);
    expect(store.consume('a', 'r', windowSet, 1).accepted).toBe(false);
  });

  it('S15: if the clock is set back by an hour, each window starts again, once, and can be swept', () => {
    const { clock, store } = setUp();
    const windowSet = windowSetFrom(['1/4s']);
    for (const account of ['a', 'b']) store.consume(account, 'r', windowSet, 1);
    clock.advance(-3_600_000 + 1_000_000);
    const again = [store.consume('a', 'r', windowSet, 1), store.consume('a', 'r', windowSet, 1)];
    expect(again.map(({ accepted, shown }) => [accepted, shown?.resetMs])).toEqual([
      [true, 4_000],
      [false, 4_000],
    ]);
    expect(store.settle(again[0] as Decision, 0)).toBe(true);
    for (let i = 0; i < 600; i++) store.peek('a', 'r', windowSet);
    for (let i = 0; i < 600; i++) store.consume('c', `${i}`, windowSet, 1);
    expect(store.stats()).toMatchObject({ swept: 1 });
  });

  it.each([0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1'])(
    'S15: a clock that returns %s is refused, and nothing is charged',
    (bad) => {
      let now: unknown = 0;
      const store = createMemoryStore({ clock: { now: () => now as number } });
      const windowSet = windowSetFrom(['2/1h']);
      const decision = store.consume('a', 'r', windowSet, 1);
      now = bad;
      expect(() => store.consume('a', 'r', windowSet, 1)).toThrow(ClockError);
      expect(() => store.peek('a', 'r', windowSet)).toThrow(ClockError);
      expect(() => store.settle(decision, 0)).toThrow(ClockError);
      now = 0;
      expect(store.peek('a', 'r', windowSet)).toMatchObject([{ remaining: 1 }]);
    },
  );

  it('S19: each of several decisions in a row has its own numbers', () => {
    const { store } = setUp();
    const windowSet = windowSetFrom(['3/1m']);
    const decisions = Array.from({ length: 5 }, () => store.consume('a', 'r', windowSet, 1));
    expect(decisions.map(({ accepted, shown }) => [accepted, shown?.remaining])).toEqual([
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
      [false, 0],
    ]);
  });

  it('S19: a decision is not changed by time, by a refund, or by writing to what it returned', () => {
    const { clock, store } = setUp();
    for (const scope of ['route', 'account'] as const) {
      const windowSet = windowSetFrom(['3/1m'], ['9/1h'], scope);
      const decision = store.consume('a', scope, windowSet, 2);
      const before = JSON.stringify(decision);
      Object.assign(decision.trace[0] as object, { remaining: 99 });
      Object.assign(decision.shown as object, { remaining: 99 });
      store.settle(decision, 0);
      clock.advance(60_000);
      store.consume('a', scope, windowSet, 1);
      store.reset({});
      expect(JSON.stringify(decision)).toBe(before);
    }
  });
});
