import fc from 'fast-check';
import { randomRuns } from 'headgate-testbed/nightly';
import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { windowSetFrom } from '../support/window-set.ts';

const LONG = 'x'.repeat(65_536);

/** The pairs of these names include ('a:b', 'c') and ('a', 'b:c'), and the same for other separators. */
const NAMES = [
  '',
  ' ',
  'a',
  'A',
  'c',
  '0',
  '-1',
  ':',
  '|',
  '\0',
  'a:b',
  'b:c',
  'a|b',
  'b|c',
  'a\0b',
  'b\0c',
  '__proto__',
  'constructor',
  'toString',
  'undefined',
  'null',
  'every route',
  'Symbol(every route)',
  'all-methods',
  LONG,
  `${LONG}y`,
  `y${LONG}`,
  '\ud800',
  '\udc00',
  '\ud801',
  '\ufffd',
  '\u00e9',
  'e\u0301',
];

const PAIRS = NAMES.flatMap((account) => NAMES.map((route) => ({ account, route })));

describe('names in the memory store', () => {
  it('S1: each pair of unusual names has its own counter', () => {
    const windowSet = windowSetFrom(['5000/1m']);
    const store = createMemoryStore({ clock: createFakeClock(), maxKeys: 10_000 });
    for (const [i, { account, route }] of PAIRS.entries()) store.consume(account, route, windowSet, i + 1);

    const counts = PAIRS.map(
      ({ account, route }) => 5000 - (store.peek(account, route, windowSet)[0]?.remaining as number),
    );
    expect(counts).toEqual(PAIRS.map((_, i) => i + 1));
    expect(store.stats().keys).toBe(PAIRS.length);
  });

  it('S1: no route has the name of the counter that all routes of an account share', () => {
    const windowSet = windowSetFrom(['5000/1m'], ['1000000/1m'], 'account');
    const store = createMemoryStore({ clock: createFakeClock(), maxKeys: 10_000 });
    for (const [i, { account, route }] of PAIRS.entries()) store.consume(account, route, windowSet, i + 1);

    for (const [i, { account, route }] of PAIRS.entries()) {
      const ofAccount = PAIRS.flatMap((pair, k) => (pair.account === account ? [k + 1] : []));
      const spent = ofAccount.reduce((sum, cost) => sum + cost, 0);
      const [own, shared] = store.peek(account, route, windowSet);
      expect([own?.remaining, shared?.remaining]).toEqual([5000 - (i + 1), 1_000_000 - spent]);
    }
  });

  it('S1: the same if that route counts All methods by itself, or is reset', () => {
    const [shared, apart] = [windowSetFrom([], ['9/1m'], 'account'), windowSetFrom([], ['9/1m'])];
    for (const route of NAMES) {
      const store = createMemoryStore({ clock: createFakeClock(), maxKeys: 16 });
      store.consume('a', 'r', shared, 9);
      expect(store.consume('a', route, apart, 9).accepted).toBe(true);
      store.reset({ account: 'a', route });
      store.reset({ route });
      expect(store.peek('a', 'r', shared)).toMatchObject([{ remaining: 0 }]);
    }
  });

  it('S14: resetting a pair, an account or a route does not reset others', () => {
    const windowSet = windowSetFrom(['1/1m']);
    for (const target of [
      { account: '__proto__', route: 'constructor' },
      { account: LONG },
      { route: '\ud800' },
      { account: '', route: '' },
      { account: '' },
      { route: '' },
    ]) {
      const store = createMemoryStore({ clock: createFakeClock(), maxKeys: 10_000 });
      for (const { account, route } of PAIRS) store.consume(account, route, windowSet, 1);
      store.reset(target);
      const forgotten = PAIRS.filter(({ account, route }) => store.peek(account, route, windowSet)[0]?.remaining === 1);
      expect(forgotten).toEqual(
        PAIRS.filter(
          (pair) => (target.account ?? pair.account) === pair.account && (target.route ?? pair.route) === pair.route,
        ),
      );
    }
  });

  it('S1: two different pairs of strings always have different counters', () => {
    const name = fc.string({ unit: 'binary', maxLength: 8 });
    const windowSet = windowSetFrom(['2/1m'], ['9/1h'], 'account');
    fc.assert(
      fc.property(fc.tuple(name, name), fc.tuple(name, name), ([account, route], [otherAccount, otherRoute]) => {
        fc.pre(account !== otherAccount || route !== otherRoute);
        const store = createMemoryStore({ clock: createFakeClock(), maxKeys: 16 });
        store.consume(account, route, windowSet, 2);
        expect(store.consume(otherAccount, otherRoute, windowSet, 2).accepted).toBe(true);
        expect(store.consume(account, route, windowSet, 1).accepted).toBe(false);
      }),
      { numRuns: randomRuns(150) },
    );
  });

  it.each([7, 8, 9, 10, 150])('S1: %i routes of one account are %i counters', (count) => {
    const windowSet = windowSetFrom(['1000/1m']);
    const store = createMemoryStore({ clock: createFakeClock() });
    const routes = Array.from({ length: count }, (_, i) => `GET /r/${i}`);
    for (const [i, route] of routes.entries()) store.consume('a', route, windowSet, i + 1);
    store.consume('b', routes[0] as string, windowSet, 1000);

    const left = (): unknown[] => routes.map((route) => store.peek('a', route, windowSet)[0]?.remaining);
    const expected = routes.map((_, i) => 1000 - (i + 1));
    expect(left()).toEqual(expected);

    // One in the middle is reset and used again. The others do not change.
    store.reset({ account: 'a', route: routes[3] });
    expect(left()).toEqual(expected.with(3, 1000));
    store.consume('a', routes[3] as string, windowSet, 7);
    expect(left()).toEqual(expected.with(3, 993));
    store.reset({ account: 'a' });
    expect(left()).toEqual(routes.map(() => 1000));
    expect(store.stats().keys).toBe(1);
  });
});
