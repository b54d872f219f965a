import { afterEach, describe, expect, it, vi } from 'vitest';
import { isHeadgateError, OptionError, StoreFullError } from '../../../src/base/errors.ts';
import type { WindowSet } from '../../../src/core/window-set.ts';
import { createMemoryStore } from '../../../src/stores/memory/limits.ts';
import { memoryStoreAt1e6 as setUp } from '../../support/memory.ts';
import { windowSetFrom } from '../../support/window-set.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('memory store: options', () => {
  it.each([0, -1, 1.5, Number.NaN, 16_000_001, '5'])('maxKeys %s is refused; the error names the option', (maxKeys) => {
    expect(() => createMemoryStore({ maxKeys: maxKeys as number })).toThrow(OptionError);
    expect(() => createMemoryStore({ maxKeys: maxKeys as number })).toThrow(/maxKeys/);
  });

  it.each([null, {}, 5])('the clock %s is refused; the error names the option', (clock) => {
    expect(() => createMemoryStore({ clock: clock as never })).toThrow(/^clock: /);
  });

  it('is synchronous, has room for 65,536 keys by default, and refuses a set with too many windows', () => {
    const store = createMemoryStore();
    expect(store.synchronous).toBe(true);
    expect(store.stats()).toEqual({ keys: 0, maxKeys: 65_536, refused: 0, swept: 0 });
    const windows = (count: number) => Array.from({ length: count }, (_, i) => ({ max: 1, durationMs: i + 100_000 }));
    const most = 16_383;
    for (const windowSet of [windowSetFrom(windows(most + 1)), windowSetFrom(['1/1s'], windows(most + 1), 'account')])
      expect(() => store.consume('a', 'r', windowSet, 1)).toThrow(
        new OptionError('windowSet', most + 1, `a record has room for at most ${most} windows`),
      );
    expect(store.stats().keys).toBe(0);
    const greatest = windowSetFrom(windows(most));
    expect([1, 2].map(() => store.consume('a', 'r', greatest, 1).accepted)).toEqual([true, false]);
  });
});

describe('memory store: bounds', () => {
  const windowSet = windowSetFrom(['2/1m']);

  it('S18: a store full of active windows refuses and counts new keys, and evicts nothing', () => {
    const { store } = setUp(3);
    for (const account of ['a', 'b', 'c']) store.consume(account, 'r', windowSet, 1);
    for (let i = 0; i < 10; i++) expect(() => store.consume(`new ${i}`, 'r', windowSet, 1)).toThrow(StoreFullError);
    expect(store.stats()).toEqual({ keys: 3, maxKeys: 3, refused: 10, swept: 0 });
    expect(['a', 'b', 'c'].map((account) => store.peek(account, 'r', windowSet)[0]?.remaining)).toEqual([1, 1, 1]);
    expect(store.consume('a', 'r', windowSet, 1).accepted).toBe(true);
  });

  it('S18: a full store throws an error with the bound; it does not reject', () => {
    const { store } = setUp(1);
    store.consume('a', 'r', windowSet, 1);
    try {
      store.consume('b', 'r', windowSet, 1);
      expect.unreachable();
    } catch (error) {
      expect(isHeadgateError(error, 'store_full')).toBe(true);
      expect(error).toMatchObject({ maxKeys: 1 });
    }
  });

  it('S18: a full store still decides if no new key is needed', () => {
    const { store } = setUp(1);
    store.consume('a', 'r', windowSet, 1);
    expect(store.consume('b', 'r', windowSet, 3).accepted).toBe(false);
    expect(store.consume('b', 'r', windowSetFrom([]), 1).accepted).toBe(true);
    expect(store.stats().refused).toBe(0);
  });

  it('S18: with a shared limit, a refused request charges neither of its two records (S5)', () => {
    const { store } = setUp(3);
    const shared = windowSetFrom(['2/1m'], ['9/1m'], 'account');
    store.consume('a', 'r', shared, 1);
    store.consume('b', 'r', windowSet, 1);
    expect(() => store.consume('a', 's', shared, 1)).toThrow(StoreFullError);
    expect(store.peek('a', 's', shared)).toMatchObject([{ remaining: 2 }, { remaining: 8 }]);
    expect(() => store.consume('c', 's', shared, 1)).toThrow(StoreFullError);
    expect(store.stats().keys).toBe(3);
  });

  it('S18: a full store still decides with the two records of a shared limit that it has', () => {
    const { store } = setUp(2);
    const shared = windowSetFrom(['9/1m'], ['9/1m'], 'account');
    for (let i = 0; i < 3; i++) expect(store.consume('a', 'r', shared, 1).accepted).toBe(true);
    expect(store.stats()).toMatchObject({ keys: 2, refused: 0 });
  });

  it('S10, S18: a record has each window once, however often two plans alternate', () => {
    const { store } = setUp(1);
    const windowSets = [
      windowSetFrom(['50000/1m', '50000/1h']),
      windowSetFrom(['50000/1m', '50000/1d'], ['50000/2m']),
    ] as const;
    for (let i = 0; i < 20_000; i++) store.consume('a', 'r', windowSets[i % 2] as WindowSet, 1);
    expect(store.peek('a', 'r', windowSets[0])).toMatchObject([{ remaining: 30_000 }, { remaining: 40_000 }]);
  });

  it('S10, S18: windows of earlier plans are removed from a record when they are over', () => {
    const { clock, store } = setUp(1);
    let accepted = 0;
    for (let i = 1; i <= 20_000; i++) {
      if (store.consume('a', 'r', windowSetFrom([{ max: 1, durationMs: i }]), 1).accepted) accepted++;
      clock.advance(20_000);
    }
    expect(accepted).toBe(20_000);
    expect(store.stats()).toMatchObject({ keys: 1, refused: 0 });
  });

  it('S18: keys whose windows are over make room', () => {
    const { clock, store } = setUp(3);
    store.consume('a', 'r', windowSetFrom(['2/1h']), 2);
    store.consume('b', 'r', windowSet, 2);
    store.consume('c', 'r', windowSet, 2);
    clock.advance(60_000);
    expect(store.consume('d', 'r', windowSet, 1).accepted).toBe(true);
    expect(store.consume('e', 'r', windowSet, 1).accepted).toBe(true);
    expect(() => store.consume('f', 'r', windowSet, 1)).toThrow(StoreFullError);
    expect(store.consume('a', 'r', windowSetFrom(['2/1h']), 1).accepted).toBe(false);
    expect(store.stats()).toMatchObject({ keys: 3, swept: 2, refused: 1 });
  });

  it('S18: reset keys make room, and a reset does not change the count of swept keys', () => {
    const { clock, store } = setUp(2);
    store.consume('a', 'r', windowSet, 1);
    store.consume('b', 's', windowSet, 1);
    store.reset({ route: 'r' });
    expect(store.consume('c', 'r', windowSet, 1).accepted).toBe(true);
    clock.advance(60_000);
    store.consume('d', 'r', windowSet, 1);
    const { swept } = store.stats();
    expect(swept).toBeGreaterThan(1);
    store.reset({});
    expect(store.stats()).toMatchObject({ keys: 0, swept });
  });

  it('S18: a shared record is swept while its own account needs room', () => {
    const { clock, store } = setUp(2);
    const shared = windowSetFrom(['2/1h'], ['9/1m'], 'account');
    store.consume('a', 'r', windowSetFrom([], ['9/1m'], 'account'), 9);
    store.consume('b', 'r', windowSet, 1);
    clock.advance(60_000);
    expect(store.consume('a', 'r', shared, 1).trace).toMatchObject([{ remaining: 1 }, { remaining: 8 }]);
    expect(store.peek('a', 'r', shared)).toMatchObject([{ remaining: 1 }, { remaining: 8 }]);
  });

  it('S18: an attacker cannot evict the own counter with 5,000 other keys', () => {
    const { store } = setUp(1000);
    expect(store.consume('attacker', 'r', windowSet, 2).accepted).toBe(true);
    let refused = 0;
    for (let i = 0; i < 5000; i++) {
      try {
        store.consume(`other ${i}`, 'r', windowSet, 1);
      } catch (error) {
        expect(isHeadgateError(error, 'store_full')).toBe(true);
        refused++;
      }
    }
    expect(store.stats()).toMatchObject({ keys: 1000, refused: 4001 });
    expect(refused).toBe(4001);
    expect(store.consume('attacker', 'r', windowSet, 1).accepted).toBe(false);
  });

  it('S4: keys whose windows are over are swept by other calls, without a timer', () => {
    const timers = [
      vi.spyOn(globalThis, 'setTimeout'),
      vi.spyOn(globalThis, 'setInterval'),
      vi.spyOn(globalThis, 'setImmediate'),
    ];
    const { clock, store } = setUp(10_000);
    for (let i = 0; i < 2000; i++) store.consume(`a${i}`, 'r', windowSet, 1);
    clock.advance(60_000);
    for (let i = 0; i < 2000; i++) store.consume(`b${i}`, 'r', windowSet, 1);
    expect(store.stats()).toMatchObject({ keys: 2000, swept: 2000 });
    for (const timer of timers) expect(timer).not.toHaveBeenCalled();
  });

  it('S4: keys whose windows are over are swept from every shard of a large store', () => {
    const { clock, store } = setUp(300_000);
    for (let i = 0; i < 1000; i++) store.consume(`a${i}`, 'r', windowSet, 1);
    clock.advance(60_000);
    for (let i = 0; i < 3000; i++) store.consume(`b${i}`, 'r', windowSet, 1);
    expect(store.stats()).toMatchObject({ keys: 3000, swept: 1000 });
  });

  it('S4: keys whose windows are over are swept even if no window starts, and if all belong to one account', () => {
    const { clock, store } = setUp();
    const year = windowSetFrom(['1000000/365d']);
    store.consume('steady', 'r', year, 1);
    for (let i = 0; i < 200; i++) store.consume('a', `r${i}`, windowSet, 1);
    clock.advance(60_000);
    for (let i = 0; i < 20_000; i++) store.consume('steady', 'r', year, 1);
    expect(store.stats()).toMatchObject({ keys: 1, swept: 200 });
  });

  it('S18: 10,000 keys with different plans have their own counts, and their records are reused', () => {
    const { clock, store } = setUp(10_000);
    const shapes = [
      windowSetFrom(['9/1m']),
      windowSetFrom(['9/1m', '99/1h']),
      windowSetFrom(['9/1m'], ['99/1h', '999/1d']),
    ];
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

  it('S18: accounts that all fall into one shard of a large store still have their own counts, to the last key', () => {
    const { clock, store } = setUp(70_000);
    const once = windowSetFrom(['1/1m']);
    // A smaller store has one shard only. The characters that choose the shard are the same in all names.
    const names = Array.from({ length: 70_000 }, (_, i) =>
      [...String(i).padStart(8, '0')].join('=======').concat('======='),
    );
    const accepted = names.filter((name) => store.consume(name, 'r', once, 1).accepted);
    expect(accepted.length).toBe(70_000);
    expect(names.filter((name) => store.consume(name, 'r', once, 1).accepted)).toEqual([]);
    expect(() => store.consume('one more', 'r', once, 1)).toThrow(StoreFullError);
    clock.advance(60_000);
    expect(names.filter((name) => !store.consume(name, 'r', once, 1).accepted)).toEqual([]);
    expect(store.stats()).toMatchObject({ keys: 70_000, refused: 1 });
  });
});
