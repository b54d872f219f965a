import { describe, expect, it } from 'vitest';
import { memoryStoreAt1e6 as setUp } from '../../support/memory.ts';
import { windowSetFrom } from '../../support/window-set.ts';

describe('memory store: limits', () => {
  it('S1: All methods is counted separately for each route and each account', () => {
    const { store } = setUp();
    const windowSet = windowSetFrom([], ['1/1m']);
    expect(store.consume('a', 'r', windowSet, 1).accepted).toBe(true);
    expect(store.consume('a', 's', windowSet, 1).accepted).toBe(true);
    expect(store.consume('b', 'r', windowSet, 1).accepted).toBe(true);
    expect(store.consume('a', 'r', windowSet, 1).accepted).toBe(false);
  });

  it('S19: a decision has the numbers of exactly its windows, with more or fewer than one copy has', () => {
    const { store } = setUp();
    const five = windowSetFrom(['9/1s', '9/1m', '9/1h'], ['9/1m', '9/1h']);
    const one = windowSetFrom(['9/1m']);
    const decisions = [five, one].map((windowSet) => store.consume('a', `${windowSet.windows.length}`, windowSet, 2));
    for (const windowSet of [five, one]) store.consume('a', `${windowSet.windows.length}`, windowSet, 3);
    expect(decisions.map(({ trace }) => trace.map(({ remaining }) => remaining))).toEqual([[7, 7, 7, 7, 7], [7]]);
  });

  it('S1: with scope account, the routes of an account share only All methods', () => {
    const { store } = setUp();
    const windowSet = windowSetFrom(['2/1m'], ['3/1m'], 'account');
    expect(store.consume('a', 'r', windowSet, 2).accepted).toBe(true);
    expect(store.consume('a', 's', windowSet, 1).shown).toMatchObject({ limit: 'all-methods', remaining: 0 });
    const rejected = store.consume('a', 's', windowSet, 1);
    expect(rejected.shown).toMatchObject({ limit: 'all-methods', remaining: 0 });
    expect(rejected.trace.map(({ limit, remaining }) => [limit, remaining])).toEqual([
      ['route', 1],
      ['all-methods', 0],
    ]);
    expect(store.consume('b', 's', windowSet, 1).accepted).toBe(true);
  });

  it('S1: with scope account, a route without a limit of its own only needs the shared key', () => {
    const { store } = setUp();
    const windowSet = windowSetFrom([], ['2/1m'], 'account');
    store.consume('a', 'r', windowSet, 1);
    store.consume('a', 's', windowSet, 1);
    expect(store.stats().keys).toBe(1);
    expect(store.consume('a', 't', windowSet, 1).accepted).toBe(false);
  });

  it('S1: scope account without All methods has no effect', () => {
    const { store } = setUp();
    const windowSet = windowSetFrom(['1/1m'], [], 'account');
    store.consume('a', 'r', windowSet, 1);
    expect(store.consume('a', 'r', windowSet, 1).accepted).toBe(false);
    expect(store.consume('a', 's', windowSet, 1).accepted).toBe(true);
  });

  it.each([1, 100, 999, 60_000, 86_400_000, 400 * 86_400_000])(
    'S4: a window of %i ms lasts exactly that long',
    (durationMs) => {
      const { clock, store } = setUp();
      const windowSet = windowSetFrom([{ max: 1, durationMs }]);
      const { shown } = store.consume('a', 'r', windowSet, 1);
      expect(shown).toEqual({
        limit: 'route',
        max: 1,
        remaining: 0,
        resetMs: durationMs,
        durationMs,
        startedAt: 1_000_000,
      });
      clock.advance(durationMs - 1);
      expect(store.consume('a', 'r', windowSet, 1)).toMatchObject({ accepted: false, shown: { resetMs: 1 } });
      clock.advance(1);
      expect(store.consume('a', 'r', windowSet, 1).shown?.startedAt).toBe(1_000_000 + durationMs);
    },
  );

  it('S5: a rejected request charges no window', () => {
    const { store } = setUp();
    const windowSet = windowSetFrom(['3/1s'], ['1/1m']);
    store.consume('a', 'r', windowSet, 1);
    for (let i = 0; i < 5; i++) store.consume('a', 'r', windowSet, 1);
    expect(store.peek('a', 'r', windowSet).map(({ remaining }) => remaining)).toEqual([2, 0]);
  });

  it('S5: a rejected first request starts no instance and creates no key', () => {
    const { store } = setUp();
    for (const scope of ['route', 'account'] as const) {
      const windowSet = windowSetFrom(['5/1s'], ['2/1m'], scope);
      const { accepted, trace } = store.consume('a', 'r', windowSet, 3);
      expect([accepted, trace.length]).toEqual([false, 2]);
      expect(store.peek('a', 'r', windowSet).map(({ startedAt }) => startedAt)).toEqual([undefined, undefined]);
    }
    expect(store.stats().keys).toBe(0);
  });

  it('S6: without windows every request is accepted, and nothing is shown or stored', () => {
    const { store } = setUp();
    for (const scope of ['route', 'account'] as const) {
      const decision = store.consume('a', 'r', windowSetFrom([], [], scope), 1);
      expect([decision.accepted, decision.shown, decision.trace]).toEqual([true, undefined, []]);
      expect(store.settle(decision, 0)).toBe(false);
    }
    expect(store.stats().keys).toBe(0);
  });

  it.each([1, 2, 3, 4, 5, 6])('S3: every window of a plan with %i windows is checked and traced', (count) => {
    const { store } = setUp();
    const windowSet = windowSetFrom(
      Array.from({ length: count }, (_, i) => ({ max: 20 - i, durationMs: 1000 * (i + 1) })),
    );
    store.consume('a', 'r', windowSet, 1);
    const { trace } = store.consume('a', 'r', windowSet, 2);
    expect(trace.map(({ remaining }) => remaining)).toEqual(Array.from({ length: count }, (_, i) => 17 - i));
  });

  it.each([5, 6])('S2: a rejection by window %i has the numbers of all windows before it', (count) => {
    const { store } = setUp();
    const windowSet = windowSetFrom(
      Array.from({ length: count }, (_, i) => ({ max: 20 - i, durationMs: 1000 * (i + 1) })),
    );
    store.consume('a', 'r', windowSet, 20 - count);
    const { trace } = store.consume('a', 'r', windowSet, 2);
    expect(trace.map(({ remaining }) => remaining)).toEqual(Array.from({ length: count }, (_, i) => count - i));
  });
});

describe('memory store: adjusting', () => {
  it('S10: a changed max applies to the count of the active instance', () => {
    const { store } = setUp();
    store.consume('a', 'r', windowSetFrom(['5/1m']), 4);
    expect(store.consume('a', 'r', windowSetFrom(['2/1m']), 1)).toMatchObject({
      accepted: false,
      shown: { remaining: 0 },
    });
    expect(store.consume('a', 'r', windowSetFrom(['9/1m']), 1)).toMatchObject({
      accepted: true,
      shown: { remaining: 4 },
    });
  });

  it('S10: a changed duration starts a new count, and the old window still counts while it is active', () => {
    const { clock, store } = setUp();
    const [before, after] = [windowSetFrom(['2/1m'], ['9/1h']), windowSetFrom(['2/2m'], ['9/1h'])];
    store.consume('a', 'r', before, 2);
    clock.advance(1000);
    expect(store.consume('a', 'r', after, 1).trace).toMatchObject([{ remaining: 1 }, { remaining: 6 }]);
    expect(store.peek('a', 'r', before)).toMatchObject([{ remaining: 0, resetMs: 59_000 }, { remaining: 6 }]);
    expect(store.consume('a', 'r', before, 1).accepted).toBe(false);
    expect(store.stats().keys).toBe(1);
  });

  it('S10: a window of an earlier plan is removed once it is over', () => {
    const { clock, store } = setUp();
    const [before, after] = [windowSetFrom(['2/1s']), windowSetFrom(['2/1h'])];
    store.consume('a', 'r', before, 2);
    store.consume('a', 'r', after, 1);
    clock.advance(1000);
    store.consume('a', 'r', after, 1);
    expect(store.consume('a', 'r', before, 1).shown).toMatchObject({ remaining: 1, startedAt: 1_001_000 });
    expect(store.peek('a', 'r', after)).toMatchObject([{ remaining: 0, startedAt: 1_000_000 }]);
  });

  it('S10: All methods keeps its count when a route gains and loses a limit of its own', () => {
    const { store } = setUp();
    store.consume('a', 'r', windowSetFrom([], ['9/1h']), 2);
    store.consume('a', 'r', windowSetFrom(['5/1m'], ['9/1h']), 2);
    expect(store.peek('a', 'r', windowSetFrom([], ['9/1h']))).toMatchObject([{ remaining: 5 }]);
    expect(store.consume('a', 'r', windowSetFrom([], []), 1).accepted).toBe(true);
    expect(store.peek('a', 'r', windowSetFrom(['5/1m'], ['9/1h']))).toMatchObject([{ remaining: 3 }, { remaining: 5 }]);
  });

  it('S10: an old shared window also still counts after a changed duration', () => {
    const { store } = setUp();
    const [before, after] = [windowSetFrom([], ['3/1m'], 'account'), windowSetFrom([], ['3/2m'], 'account')];
    store.consume('a', 'r', before, 3);
    expect(store.consume('a', 's', after, 1).shown).toMatchObject({ remaining: 2 });
    expect(store.consume('a', 't', before, 1).accepted).toBe(false);
  });
});

describe('memory store: refunds', () => {
  const windowSet = windowSetFrom(['3/1s'], ['9/1m']);

  it('S13: a refund subtracts from every window of the decision, once', () => {
    const { store } = setUp();
    const decision = store.consume('a', 'r', windowSet, 3);
    expect([store.settle(decision, 0), store.settle(decision, 0)]).toEqual([true, false]);
    expect(store.peek('a', 'r', windowSet)).toMatchObject([{ remaining: 3 }, { remaining: 9 }]);
  });

  it('S13: an instance whose count becomes 0 stays active, with its start', () => {
    const { clock, store } = setUp();
    store.settle(store.consume('a', 'r', windowSet, 3), 0);
    clock.advance(400);
    expect(store.consume('a', 'r', windowSet, 1).trace[0]).toMatchObject({
      remaining: 2,
      resetMs: 600,
      startedAt: 1_000_000,
    });
  });

  it('S13: a refund never changes a later instance, even if another window is refunded', () => {
    const { clock, store } = setUp();
    const decision = store.consume('a', 'r', windowSet, 2);
    clock.advance(1000);
    store.consume('a', 'r', windowSet, 2);
    expect(store.settle(decision, 0)).toBe(true);
    expect(store.peek('a', 'r', windowSet)).toMatchObject([{ remaining: 1 }, { remaining: 7 }]);
  });

  it('S13: a refund does nothing and creates no key if the instance is over or reset, or the decision rejected', () => {
    const { clock, store } = setUp();
    const rejected = store.consume('a', 'r', windowSet, 4);
    const late = store.consume('a', 'r', windowSet, 1);
    const forgotten = store.consume('b', 'r', windowSet, 1);
    store.reset({ account: 'b' });
    clock.advance(60_000);
    expect([rejected, late, forgotten].map((decision) => store.settle(decision, 0))).toEqual([false, false, false]);
    store.reset({});
    expect(store.settle(late, 0)).toBe(false);
    expect(store.stats().keys).toBe(0);
  });

  it('S13: after a reset, an instance of the same millisecond does not get below zero', () => {
    const { store } = setUp();
    const decision = store.consume('a', 'r', windowSet, 3);
    store.reset({});
    store.consume('a', 'r', windowSet, 1);
    store.settle(decision, 0);
    expect(store.peek('a', 'r', windowSet)).toMatchObject([{ remaining: 3 }, { remaining: 9 }]);
  });

  it('S13: a refund works after the plan has changed', () => {
    const { store } = setUp();
    const decision = store.consume('a', 'r', windowSet, 2);
    store.consume('a', 'r', windowSetFrom(['4/1h'], ['9/1m']), 1);
    expect(store.settle(decision, 0)).toBe(true);
    expect(store.peek('a', 'r', windowSet)).toMatchObject([{ remaining: 3 }, { remaining: 8 }]);
  });

  it('S13: with scope account, the shared counter is refunded as well, even if the own record was deleted', () => {
    const { store } = setUp();
    const shared = windowSetFrom(['3/1s'], ['9/1m'], 'account');
    const [first, second] = [store.consume('a', 'r', shared, 2), store.consume('a', 's', shared, 2)];
    expect(store.settle(first, 0)).toBe(true);
    store.reset({ account: 'a', route: 's' });
    expect(store.settle(second, 0)).toBe(true);
    expect(store.peek('a', 's', shared)).toMatchObject([{ remaining: 3 }, { remaining: 9 }]);
  });
});
