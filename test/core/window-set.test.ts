import { describe, expect, it } from 'vitest';
import { parseLimit } from '../../src/core/limit.ts';
import { createWindowSet, routeOfUnit } from '../../src/core/window-set.ts';

describe('plans', () => {
  it("S2: the route's own windows come before those of All methods, the shorter first", () => {
    const windowSet = createWindowSet(parseLimit(['9/1d', '3/1h']), parseLimit(['5/1h', '1/1s']));
    expect(windowSet.windows).toEqual([
      { limit: 'route', max: 3, durationMs: 3_600_000 },
      { limit: 'route', max: 9, durationMs: 86_400_000 },
      { limit: 'all-methods', max: 1, durationMs: 1000 },
      { limit: 'all-methods', max: 5, durationMs: 3_600_000 },
    ]);
    expect(windowSet.routeWindows).toBe(2);
  });

  it('S2: the flat arrays have the numbers of the windows', () => {
    const windowSet = createWindowSet(parseLimit(['9/400d']), parseLimit(['9007199254740991/1ms']));
    expect([...windowSet.maxes]).toEqual(windowSet.windows.map(({ max }) => max));
    expect([...windowSet.durations]).toEqual(windowSet.windows.map(({ durationMs }) => durationMs));
  });

  it('S1: All methods is counted per route by default', () => {
    expect(createWindowSet([], []).allMethodsScope).toBe('route');
    expect(createWindowSet([], [], 'account').allMethodsScope).toBe('account');
  });

  it('S6: both limits may be empty', () => {
    expect(createWindowSet([], [])).toMatchObject({ windows: [], routeWindows: 0 });
  });

  it('S19: a plan is frozen, and does not refer to the limits that it was created from', () => {
    const limit = [{ max: 1, durationMs: 1000 }];
    const windowSet = createWindowSet(limit, []);
    (limit[0] as { max: number }).max = 9;
    expect(windowSet.windows[0]?.max).toBe(1);
    expect([windowSet, windowSet.windows, windowSet.windows[0]].map(Object.isFrozen)).toEqual([true, true, true]);
  });
});

it('S6: a plan shows its last window by default', () => {
  expect(createWindowSet([], parseLimit(['1/1s'])).shows).toBe('last');
});

describe('S33: window sets by unit', () => {
  const partsOf = (...args: Parameters<typeof createWindowSet>) =>
    createWindowSet(...args).units?.map((part) => ({
      unit: part.unit,
      route: routeOfUnit('POST /x', part),
      windows: part.windowSet.windows.map(({ limit, max }) => `${limit} ${max}`),
      scope: part.windowSet.allMethodsScope,
      routeWindows: part.windowSet.routeWindows,
      units: part.windowSet.units,
    }));
  const common = { scope: 'route', units: undefined };

  it('a window set whose windows all count requests has no units', () => {
    expect(createWindowSet(parseLimit(['1/1s']), parseLimit(['2 requests/1s'])).units).toBeUndefined();
  });

  it('windows of a unit are counted under a route of its own: requests first, then the units by name', () => {
    const all = parseLimit(['1 tokens/1s', '2/1s', '3 images/1s', '4 tokens/1m']);
    expect(partsOf(parseLimit(['5 tokens/1s']), all)).toEqual([
      { ...common, unit: 'requests', route: 'POST /x', windows: ['all-methods 2'], routeWindows: 0 },
      { ...common, unit: 'images', route: 'POST /x#images', windows: ['all-methods 3'], routeWindows: 0 },
      {
        ...common,
        unit: 'tokens',
        route: 'POST /x#tokens',
        windows: ['route 5', 'all-methods 1', 'all-methods 4'],
        routeWindows: 1,
      },
    ]);
    const windowSet = createWindowSet(parseLimit(['5 tokens/1s']), all);
    expect(windowSet.windows.map(({ max }) => max)).toEqual([2, 3, 5, 1, 4]);
    expect([...windowSet.maxes]).toEqual([2, 3, 5, 1, 4]);
    expect(windowSet.routeWindows).toBe(1);
    expect(windowSet.windows.map(({ unit }) => unit)).toEqual([undefined, 'images', 'tokens', 'tokens', 'tokens']);
  });

  it('windows of a unit that all routes share are apart from those of requests, and from those of the route', () => {
    const route = parseLimit(['1/1s', '5 tokens/1s']);
    const parts = partsOf(route, parseLimit(['2/1s', '3 tokens/1s', '4 images/1s']), 'account');
    expect(parts).toEqual([
      {
        ...common,
        unit: 'requests',
        route: 'POST /x',
        windows: ['route 1', 'all-methods 2'],
        scope: 'account',
        routeWindows: 1,
      },
      { ...common, unit: 'images', route: '*#images', windows: ['all-methods 4'], routeWindows: 0 },
      { ...common, unit: 'tokens', route: 'POST /x#tokens', windows: ['route 5'], routeWindows: 1 },
      { ...common, unit: 'tokens', route: '*#tokens', windows: ['all-methods 3'], routeWindows: 0 },
    ]);
  });
});
