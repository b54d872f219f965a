import { describe, expect, it } from 'vitest';
import { parseLimit } from '../../src/core/limit.ts';
import { createPlan } from '../../src/core/plan.ts';

describe('plans', () => {
  it("S2: the route's own windows come before those of All methods, the shorter first", () => {
    const plan = createPlan(parseLimit(['9/1d', '3/1h']), parseLimit(['5/1h', '1/1s']));
    expect(plan.windows).toEqual([
      { limit: 'route', max: 3, durationMs: 3_600_000 },
      { limit: 'route', max: 9, durationMs: 86_400_000 },
      { limit: 'all-methods', max: 1, durationMs: 1000 },
      { limit: 'all-methods', max: 5, durationMs: 3_600_000 },
    ]);
    expect(plan.routeWindows).toBe(2);
  });

  it('S2: the flat arrays have the numbers of the windows', () => {
    const plan = createPlan(parseLimit(['9/400d']), parseLimit(['9007199254740991/1ms']));
    expect([...plan.maxes]).toEqual(plan.windows.map(({ max }) => max));
    expect([...plan.durations]).toEqual(plan.windows.map(({ durationMs }) => durationMs));
  });

  it('S1: All methods is counted per route by default', () => {
    expect(createPlan([], []).allMethodsScope).toBe('route');
    expect(createPlan([], [], 'account').allMethodsScope).toBe('account');
  });

  it('S6: both limits may be empty', () => {
    expect(createPlan([], [])).toMatchObject({ windows: [], routeWindows: 0 });
  });

  it('S19: a plan is frozen, and does not refer to the limits that it was created from', () => {
    const limit = [{ max: 1, durationMs: 1000 }];
    const plan = createPlan(limit, []);
    (limit[0] as { max: number }).max = 9;
    expect(plan.windows[0]?.max).toBe(1);
    expect([plan, plan.windows, plan.windows[0]].map(Object.isFrozen)).toEqual([true, true, true]);
  });
});

it('S6: a plan shows its last window by default', () => {
  expect(createPlan([], parseLimit(['1/1s'])).shows).toBe('last');
});
