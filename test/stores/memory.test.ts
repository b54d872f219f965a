import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClockError, isHeadgateError, OptionError, StoreFullError } from '../../src/core/errors.ts';
import { createMemoryStore } from '../../src/stores/memory/store.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { planFrom } from '../support/plan.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

function setUp(maxKeys = 1000) {
  const clock = createFakeClock(1_000_000);
  return { clock, store: createMemoryStore({ clock, maxKeys }) };
}

describe('memory store: limits', () => {
  it('S1: All methods is counted for each route and each account apart', () => {
    const { store } = setUp();
    const plan = planFrom([], ['1/1m']);
    expect(store.consume('a', 'r', plan, 1).accepted).toBe(true);
    expect(store.consume('a', 's', plan, 1).accepted).toBe(true);
    expect(store.consume('b', 'r', plan, 1).accepted).toBe(true);
    expect(store.consume('a', 'r', plan, 1).accepted).toBe(false);
  });

  it('S1: with scope account, the routes of an account share All methods, and only that', () => {
    const { store } = setUp();
    const plan = planFrom(['2/1m'], ['3/1m'], 'account');
    expect(store.consume('a', 'r', plan, 2).accepted).toBe(true);
    expect(store.consume('a', 's', plan, 1).shown).toMatchObject({ limit: 'all-methods', remaining: 0 });
    const rejected = store.consume('a', 's', plan, 1);
    expect(rejected.shown).toMatchObject({ limit: 'all-methods', remaining: 0 });
    expect(rejected.trace.map(({ limit, remaining }) => [limit, remaining])).toEqual([
      ['route', 1],
      ['all-methods', 0],
    ]);
    expect(store.consume('b', 's', plan, 1).accepted).toBe(true);
  });

  it('S1: with scope account, a route without a limit of its own takes one key, the shared one', () => {
    const { store } = setUp();
    const plan = planFrom([], ['2/1m'], 'account');
    store.consume('a', 'r', plan, 1);
    store.consume('a', 's', plan, 1);
    expect(store.stats().keys).toBe(1);
    expect(store.consume('a', 't', plan, 1).accepted).toBe(false);
  });

  it('S1: scope account without All methods is like any route', () => {
    const { store } = setUp();
    const plan = planFrom(['1/1m'], [], 'account');
    store.consume('a', 'r', plan, 1);
    expect(store.consume('a', 'r', plan, 1).accepted).toBe(false);
    expect(store.consume('a', 's', plan, 1).accepted).toBe(true);
  });

  it.each([1, 100, 999, 60_000, 86_400_000, 400 * 86_400_000])('S4: a window of %i ms lasts exactly that', (durationMs) => {
    const { clock, store } = setUp();
    const plan = planFrom([{ max: 1, durationMs }]);
    const { shown } = store.consume('a', 'r', plan, 1);
    expect(shown).toEqual({ limit: 'route', max: 1, remaining: 0, resetMs: durationMs, durationMs, startedAt: 1_000_000 });
    clock.advance(durationMs - 1);
    expect(store.consume('a', 'r', plan, 1)).toMatchObject({ accepted: false, shown: { resetMs: 1 } });
    clock.advance(1);
    expect(store.consume('a', 'r', plan, 1).shown?.startedAt).toBe(1_000_000 + durationMs);
  });

  it('S5: a rejected request charges nothing, in no window', () => {
    const { store } = setUp();
    const plan = planFrom(['3/1s'], ['1/1m']);
    store.consume('a', 'r', plan, 1);
    for (let i = 0; i < 5; i++) store.consume('a', 'r', plan, 1);
    expect(store.peek('a', 'r', plan).map(({ remaining }) => remaining)).toEqual([2, 0]);
  });

  it('S5: a rejected first request starts nothing and takes no key', () => {
    const { store } = setUp();
    for (const scope of ['route', 'account'] as const) {
      const plan = planFrom(['5/1s'], ['2/1m'], scope);
      const { accepted, trace } = store.consume('a', 'r', plan, 3);
      expect([accepted, trace.length]).toEqual([false, 2]);
      expect(store.peek('a', 'r', plan).map(({ startedAt }) => startedAt)).toEqual([undefined, undefined]);
    }
    expect(store.stats().keys).toBe(0);
  });

  it('S6: without windows all is accepted, nothing is shown and nothing is kept', () => {
    const { store } = setUp();
    for (const scope of ['route', 'account'] as const) {
      const decision = store.consume('a', 'r', planFrom([], [], scope), 1);
      expect([decision.accepted, decision.shown, decision.trace]).toEqual([true, undefined, []]);
      expect(store.refund(decision)).toBe(false);
    }
    expect(store.stats().keys).toBe(0);
  });

  it.each([1, 2, 3, 4, 5, 6])('S3: a plan of %i windows is checked and traced whole', (count) => {
    const { store } = setUp();
    const plan = planFrom(Array.from({ length: count }, (_, i) => ({ max: 20 - i, durationMs: 1000 * (i + 1) })));
    store.consume('a', 'r', plan, 1);
    const { trace } = store.consume('a', 'r', plan, 2);
    expect(trace.map(({ remaining }) => remaining)).toEqual(Array.from({ length: count }, (_, i) => 17 - i));
  });
});

describe('memory store: adjusting', () => {
  it('S10: another max meets the count of the active instance', () => {
    const { store } = setUp();
    store.consume('a', 'r', planFrom(['5/1m']), 4);
    expect(store.consume('a', 'r', planFrom(['2/1m']), 1)).toMatchObject({ accepted: false, shown: { remaining: 0 } });
    expect(store.consume('a', 'r', planFrom(['9/1m']), 1)).toMatchObject({ accepted: true, shown: { remaining: 4 } });
  });

  it('S10: another duration starts fresh, and the old window is met again while it is active', () => {
    const { clock, store } = setUp();
    const [before, after] = [planFrom(['2/1m'], ['9/1h']), planFrom(['2/2m'], ['9/1h'])];
    store.consume('a', 'r', before, 2);
    clock.advance(1000);
    expect(store.consume('a', 'r', after, 1).trace).toMatchObject([{ remaining: 1 }, { remaining: 6 }]);
    expect(store.peek('a', 'r', before)).toMatchObject([{ remaining: 0, resetMs: 59_000 }, { remaining: 6 }]);
    expect(store.consume('a', 'r', before, 1).accepted).toBe(false);
    expect(store.stats().keys).toBe(1);
  });

  it('S10: what an earlier plan left behind is dropped once it is over', () => {
    const { clock, store } = setUp();
    const [before, after] = [planFrom(['2/1s']), planFrom(['2/1h'])];
    store.consume('a', 'r', before, 2);
    store.consume('a', 'r', after, 1);
    clock.advance(1000);
    store.consume('a', 'r', after, 1);
    expect(store.consume('a', 'r', before, 1).shown).toMatchObject({ remaining: 1, startedAt: 1_001_000 });
    expect(store.peek('a', 'r', after)).toMatchObject([{ remaining: 0, startedAt: 1_000_000 }]);
  });

  it('S10: All methods keeps its count when a route gains and loses a limit of its own', () => {
    const { store } = setUp();
    store.consume('a', 'r', planFrom([], ['9/1h']), 2);
    store.consume('a', 'r', planFrom(['5/1m'], ['9/1h']), 2);
    expect(store.peek('a', 'r', planFrom([], ['9/1h']))).toMatchObject([{ remaining: 5 }]);
    expect(store.consume('a', 'r', planFrom([], []), 1).accepted).toBe(true);
    expect(store.peek('a', 'r', planFrom(['5/1m'], ['9/1h']))).toMatchObject([{ remaining: 3 }, { remaining: 5 }]);
  });

  it('S10: a shared window, too, is met again after another duration', () => {
    const { store } = setUp();
    const [before, after] = [planFrom([], ['3/1m'], 'account'), planFrom([], ['3/2m'], 'account')];
    store.consume('a', 'r', before, 3);
    expect(store.consume('a', 's', after, 1).shown).toMatchObject({ remaining: 2 });
    expect(store.consume('a', 't', before, 1).accepted).toBe(false);
  });
});

describe('memory store: refunds', () => {
  const plan = planFrom(['3/1s'], ['9/1m']);

  it('S13: a refund takes back from every window of its decision, once', () => {
    const { store } = setUp();
    const decision = store.consume('a', 'r', plan, 3);
    expect([store.refund(decision), store.refund(decision)]).toEqual([true, false]);
    expect(store.peek('a', 'r', plan)).toMatchObject([{ remaining: 3 }, { remaining: 9 }]);
  });

  it('S13: an instance without a count stays, with its start', () => {
    const { clock, store } = setUp();
    store.refund(store.consume('a', 'r', plan, 3));
    clock.advance(400);
    expect(store.consume('a', 'r', plan, 1).trace[0]).toMatchObject({ remaining: 2, resetMs: 600, startedAt: 1_000_000 });
  });

  it('S13: a refund never lands in a later instance, also where another window takes its part back', () => {
    const { clock, store } = setUp();
    const decision = store.consume('a', 'r', plan, 2);
    clock.advance(1000);
    store.consume('a', 'r', plan, 2);
    expect(store.refund(decision)).toBe(true);
    expect(store.peek('a', 'r', plan)).toMatchObject([{ remaining: 1 }, { remaining: 7 }]);
  });

  it('S13: a refund of what is over, was reset or was rejected does nothing and creates no key', () => {
    const { clock, store } = setUp();
    const rejected = store.consume('a', 'r', plan, 4);
    const late = store.consume('a', 'r', plan, 1);
    const forgotten = store.consume('b', 'r', plan, 1);
    store.reset({ account: 'b' });
    clock.advance(60_000);
    expect([rejected, late, forgotten].map((decision) => store.refund(decision))).toEqual([false, false, false]);
    store.reset({});
    expect(store.refund(late)).toBe(false);
    expect(store.stats().keys).toBe(0);
  });

  it('S13: after a reset, an instance of the same millisecond is not taken below zero', () => {
    const { store } = setUp();
    const decision = store.consume('a', 'r', plan, 3);
    store.reset({});
    store.consume('a', 'r', plan, 1);
    store.refund(decision);
    expect(store.peek('a', 'r', plan)).toMatchObject([{ remaining: 3 }, { remaining: 9 }]);
  });

  it('S13: a refund finds its windows after the plan has changed', () => {
    const { store } = setUp();
    const decision = store.consume('a', 'r', plan, 2);
    store.consume('a', 'r', planFrom(['4/1h'], ['9/1m']), 1);
    expect(store.refund(decision)).toBe(true);
    expect(store.peek('a', 'r', plan)).toMatchObject([{ remaining: 3 }, { remaining: 8 }]);
  });

  it('S13: with scope account, the shared counter is refunded too, also after the own record has gone', () => {
    const { store } = setUp();
    const shared = planFrom(['3/1s'], ['9/1m'], 'account');
    const [first, second] = [store.consume('a', 'r', shared, 2), store.consume('a', 's', shared, 2)];
    expect(store.refund(first)).toBe(true);
    store.reset({ account: 'a', route: 's' });
    expect(store.refund(second)).toBe(true);
    expect(store.peek('a', 's', shared)).toMatchObject([{ remaining: 3 }, { remaining: 9 }]);
  });
});

describe('memory store: peek, reset, clock, snapshots', () => {
  it('S14: a peek shows every window, also behind one that rejects, and creates nothing', () => {
    const { store } = setUp();
    const plan = planFrom(['0/1s', '2/1m'], ['5/1h']);
    expect(store.peek('a', 'r', plan)).toEqual([
      { limit: 'route', max: 0, remaining: 0, resetMs: 0, durationMs: 1000, startedAt: undefined },
      { limit: 'route', max: 2, remaining: 2, resetMs: 0, durationMs: 60_000, startedAt: undefined },
      { limit: 'all-methods', max: 5, remaining: 5, resetMs: 0, durationMs: 3_600_000, startedAt: undefined },
    ]);
    expect(store.stats().keys).toBe(0);
  });

  it('S14: a peek of a plan that the record was not laid out for changes nothing', () => {
    const { store } = setUp();
    store.consume('a', 'r', planFrom(['2/1m']), 2);
    expect(store.peek('a', 'r', planFrom(['2/1h']))).toMatchObject([{ remaining: 2, startedAt: undefined }]);
    expect(store.consume('a', 'r', planFrom(['2/1m']), 1).accepted).toBe(false);
  });

  it('S14: reset forgets what it names: a pair, an account, a route of every account, everything', () => {
    const plan = planFrom(['1/1h']);
    const pairs = ['a:r', 'a:s', 'b:r', 'b:s'];
    const targets = [{ account: 'a', route: 'r' }, { account: 'a' }, { route: 'r' }, {}, { account: 'x', route: 'y' }];
    const forgotten = targets.map((target) => {
      const { store } = setUp();
      for (const pair of pairs) store.consume(pair[0] as string, pair[2] as string, plan, 1);
      store.reset(target);
      return pairs.filter((pair) => store.consume(pair[0] as string, pair[2] as string, plan, 1).accepted);
    });
    expect(forgotten).toEqual([['a:r'], ['a:r', 'a:s'], ['a:r', 'b:r'], pairs, []]);
  });

  it('S14: reset of a pair leaves the shared counter, reset of the account does not', () => {
    const { store } = setUp();
    const plan = planFrom(['2/1h'], ['2/1h'], 'account');
    store.consume('a', 'r', plan, 2);
    store.reset({ account: 'a', route: 'r' });
    expect(store.peek('a', 'r', plan)).toMatchObject([{ remaining: 2 }, { remaining: 0 }]);
    store.reset({ route: 'r' });
    expect(store.peek('a', 'r', plan)).toMatchObject([{ remaining: 2 }, { remaining: 0 }]);
    store.reset({ account: 'a' });
    expect(store.peek('a', 'r', plan)).toMatchObject([{ remaining: 2 }, { remaining: 2 }]);
  });

  it('S15: a step of the wall clock does not move the default clock', () => {
    const store = createMemoryStore();
    const plan = planFrom(['2/1h']);
    const { decidedAt } = store.consume('a', 'r', plan, 1);
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 86_400_000);
    const later = store.consume('a', 'r', plan, 1);
    expect(later.shown?.startedAt).toBe(decidedAt);
    expect(later.decidedAt - decidedAt).toBeLessThan(60_000);
    expect(later.decidedAt).toBeGreaterThanOrEqual(decidedAt);
    expect(store.consume('a', 'r', plan, 1).accepted).toBe(false);
  });

  it('S15: a clock that steps back purges nothing', () => {
    const { clock, store } = setUp();
    const plan = planFrom(['1/1s']);
    store.consume('a', 'r', plan, 1);
    clock.advance(-500_000);
    for (let i = 0; i < 600; i++) store.consume('b', `${i}`, plan, 1);
    expect(store.consume('a', 'r', plan, 1)).toMatchObject({ accepted: false, shown: { resetMs: 501_000 } });
  });

  it.each([0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1'])('S15: a clock that says %s is refused, and nothing is charged', (bad) => {
    let now: unknown = 0;
    const store = createMemoryStore({ clock: { now: () => now as number } });
    const plan = planFrom(['2/1h']);
    const decision = store.consume('a', 'r', plan, 1);
    now = bad;
    expect(() => store.consume('a', 'r', plan, 1)).toThrow(ClockError);
    expect(() => store.peek('a', 'r', plan)).toThrow(ClockError);
    expect(() => store.refund(decision)).toThrow(ClockError);
    now = 0;
    expect(store.peek('a', 'r', plan)).toMatchObject([{ remaining: 1 }]);
  });

  it('S19: pipelined decisions each keep their own numbers (field note 8)', () => {
    const { store } = setUp();
    const plan = planFrom(['3/1m']);
    const decisions = Array.from({ length: 5 }, () => store.consume('a', 'r', plan, 1));
    expect(decisions.map(({ accepted, shown }) => [accepted, shown?.remaining])).toEqual([
      [true, 2],
      [true, 1],
      [true, 0],
      [false, 0],
      [false, 0],
    ]);
  });

  it('S19: neither time, nor a refund, nor a reader who writes changes a decision', () => {
    const { clock, store } = setUp();
    for (const scope of ['route', 'account'] as const) {
      const plan = planFrom(['3/1m'], ['9/1h'], scope);
      const decision = store.consume('a', scope, plan, 2);
      const before = JSON.stringify(decision);
      Object.assign(decision.trace[0] as object, { remaining: 99 });
      Object.assign(decision.shown as object, { remaining: 99 });
      store.refund(decision);
      clock.advance(60_000);
      store.consume('a', scope, plan, 1);
      store.reset({});
      expect(JSON.stringify(decision)).toBe(before);
    }
  });
});

describe('memory store: options', () => {
  it.each([0, -1, 1.5, Number.NaN, 16_000_001, '5'])('refuses maxKeys %s by name', (maxKeys) => {
    expect(() => createMemoryStore({ maxKeys: maxKeys as number })).toThrow(OptionError);
    expect(() => createMemoryStore({ maxKeys: maxKeys as number })).toThrow(/maxKeys/);
  });

  it.each([null, {}, 5])('refuses the clock %s by name', (clock) => {
    expect(() => createMemoryStore({ clock: clock as never })).toThrow(/^clock: /);
  });

  it('says that it is synchronous, holds 65,536 keys by default, and refuses a plan beyond all measure', () => {
    const store = createMemoryStore();
    expect(store.synchronous).toBe(true);
    expect(store.stats()).toEqual({ keys: 0, maxKeys: 65_536, refused: 0, swept: 0 });
    const plan = planFrom(Array.from({ length: 20_000 }, (_, i) => ({ max: 1, durationMs: i + 1 })));
    expect(() => store.consume('a', 'r', plan, 1)).toThrow(OptionError);
    expect(store.stats().keys).toBe(0);
  });
});

describe('memory store: bounds', () => {
  const plan = planFrom(['2/1m']);

  it('S18: full of active windows, it refuses newcomers, counts them, and forgets nothing', () => {
    const { store } = setUp(3);
    for (const account of ['a', 'b', 'c']) store.consume(account, 'r', plan, 1);
    for (let i = 0; i < 10; i++) expect(() => store.consume(`new ${i}`, 'r', plan, 1)).toThrow(StoreFullError);
    expect(store.stats()).toEqual({ keys: 3, maxKeys: 3, refused: 10, swept: 0 });
    expect(['a', 'b', 'c'].map((account) => store.peek(account, 'r', plan)[0]?.remaining)).toEqual([1, 1, 1]);
    expect(store.consume('a', 'r', plan, 1).accepted).toBe(true);
  });

  it('S18: the error is breakage, not a rejection, and names the bound', () => {
    const { store } = setUp(1);
    store.consume('a', 'r', plan, 1);
    try {
      store.consume('b', 'r', plan, 1);
      expect.unreachable();
    } catch (error) {
      expect(isHeadgateError(error, 'store_full')).toBe(true);
      expect(error).toMatchObject({ maxKeys: 1 });
    }
  });

  it('S18: a full store still rejects what no key is needed for', () => {
    const { store } = setUp(1);
    store.consume('a', 'r', plan, 1);
    expect(store.consume('b', 'r', plan, 3).accepted).toBe(false);
    expect(store.consume('b', 'r', planFrom([]), 1).accepted).toBe(true);
    expect(store.stats().refused).toBe(0);
  });

  it('S18: a refused newcomer of a shared limit charges neither of its two records (S5)', () => {
    const { store } = setUp(3);
    const shared = planFrom(['2/1m'], ['9/1m'], 'account');
    store.consume('a', 'r', shared, 1);
    store.consume('b', 'r', plan, 1);
    expect(() => store.consume('a', 's', shared, 1)).toThrow(StoreFullError);
    expect(store.peek('a', 's', shared)).toMatchObject([{ remaining: 2 }, { remaining: 8 }]);
    expect(() => store.consume('c', 's', shared, 1)).toThrow(StoreFullError);
    expect(store.stats().keys).toBe(3);
  });

  it('S18: what is over makes room', () => {
    const { clock, store } = setUp(3);
    store.consume('a', 'r', planFrom(['2/1h']), 2);
    store.consume('b', 'r', plan, 2);
    store.consume('c', 'r', plan, 2);
    clock.advance(60_000);
    expect(store.consume('d', 'r', plan, 1).accepted).toBe(true);
    expect(store.consume('e', 'r', plan, 1).accepted).toBe(true);
    expect(() => store.consume('f', 'r', plan, 1)).toThrow(StoreFullError);
    expect(store.consume('a', 'r', planFrom(['2/1h']), 1).accepted).toBe(false);
    expect(store.stats()).toMatchObject({ keys: 3, swept: 2, refused: 1 });
  });

  it('S18: what was reset makes room, and resets do not lose the count of the swept', () => {
    const { clock, store } = setUp(2);
    store.consume('a', 'r', plan, 1);
    store.consume('b', 's', plan, 1);
    store.reset({ route: 'r' });
    expect(store.consume('c', 'r', plan, 1).accepted).toBe(true);
    clock.advance(60_000);
    store.consume('d', 'r', plan, 1);
    const { swept } = store.stats();
    expect(swept).toBeGreaterThan(1);
    store.reset({});
    expect(store.stats()).toMatchObject({ keys: 0, swept });
  });

  it('S18: a shared record whose time is over while its route asks for room', () => {
    const { clock, store } = setUp(2);
    const shared = planFrom(['2/1h'], ['9/1m'], 'account');
    store.consume('a', 'r', planFrom([], ['9/1m'], 'account'), 9);
    store.consume('b', 'r', plan, 1);
    clock.advance(60_000);
    expect(store.consume('a', 'r', shared, 1).trace).toMatchObject([{ remaining: 1 }, { remaining: 8 }]);
    expect(store.peek('a', 'r', shared)).toMatchObject([{ remaining: 1 }, { remaining: 8 }]);
  });

  it("S18: 5,000 other keys do not push an attacker's own counter out (field note 9)", () => {
    const { store } = setUp(1000);
    expect(store.consume('attacker', 'r', plan, 2).accepted).toBe(true);
    let refused = 0;
    for (let i = 0; i < 5000; i++) {
      try {
        store.consume(`other ${i}`, 'r', plan, 1);
      } catch (error) {
        expect(isHeadgateError(error, 'store_full')).toBe(true);
        refused++;
      }
    }
    expect(store.stats()).toMatchObject({ keys: 1000, refused: 4001 });
    expect(refused).toBe(4001);
    expect(store.consume('attacker', 'r', plan, 1).accepted).toBe(false);
  });

  it('S4: keys that are over leave as traffic goes on, without a timer', () => {
    const timers = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'setInterval'), vi.spyOn(globalThis, 'setImmediate')];
    const { clock, store } = setUp(10_000);
    for (let i = 0; i < 2000; i++) store.consume(`a${i}`, 'r', plan, 1);
    clock.advance(60_000);
    for (let i = 0; i < 2000; i++) store.consume(`b${i}`, 'r', plan, 1);
    expect(store.stats()).toMatchObject({ keys: 2000, swept: 2000 });
    for (const timer of timers) expect(timer).not.toHaveBeenCalled();
  });

  it('S4: keys that are over leave also where no window begins, and where all belong to one account', () => {
    const { clock, store } = setUp();
    const year = planFrom(['1000000/365d']);
    store.consume('steady', 'r', year, 1);
    for (let i = 0; i < 200; i++) store.consume('a', `r${i}`, plan, 1);
    clock.advance(60_000);
    for (let i = 0; i < 20_000; i++) store.consume('steady', 'r', year, 1);
    expect(store.stats()).toMatchObject({ keys: 1, swept: 200 });
  });

  it('S18: ten thousand keys of several shapes keep their counts, and their places are used again', () => {
    const { clock, store } = setUp(10_000);
    const shapes = [planFrom(['9/1m']), planFrom(['9/1m', '99/1h']), planFrom(['9/1m'], ['99/1h', '999/1d'])];
    const keys = Array.from({ length: 10_000 }, (_, i) => {
      const shape = shapes[i % 3] as (typeof shapes)[0];
      return { account: `a${i % 2500}`, route: `r${Math.floor(i / 2500)}`, shape, cost: (i % 9) + 1 };
    });
    for (let round = 0; round < 2; round++) {
      for (const { account, route, shape, cost } of keys) store.consume(account, route, shape, cost);
      const left = keys.map(({ account, route, shape }) => store.peek(account, route, shape)[0]?.remaining);
      expect(left).toEqual(keys.map(({ cost }) => 9 - cost));
      expect(store.stats()).toMatchObject({ keys: 10_000, refused: 0 });
      clock.advance(86_400_000);
    }
  });
});
