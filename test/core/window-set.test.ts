import { describe, expect, it } from 'vitest';
import { parseLimit } from '../../src/core/limit.ts';
import { createWindowSet } from '../../src/core/window-set.ts';

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
