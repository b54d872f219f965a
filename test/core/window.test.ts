import { describe, expect, it } from 'vitest';
import { add, type Counters, fits, isOver, NEVER, SLOTS_PER_WINDOW, settleWindow } from '../../src/core/window.ts';

/** One window between two numbers that must not change. */
function counters(startedAt: number, count: number): Counters {
  return Float64Array.of(-7, startedAt, count, -7);
}

describe('windows', () => {
  it('S4: an instance is over one millisecond after its last one, not before', () => {
    expect([100, 149, 150, 151].map((now) => isOver(100, 50, now))).toEqual([false, false, true, true]);
  });

  it('S4: a window without an instance is over at any time', () => {
    expect([-1e15, 0, 1e15].map((now) => isOver(NEVER, Number.MAX_SAFE_INTEGER, now))).toEqual([true, true, true]);
  });

  it('S15: an instance whose start is in the future is over, because the clock was set back', () => {
    expect([100, 99, -1_000_000].map((now) => isOver(100, 50, now))).toEqual([false, true, true]);
  });

  it.each([
    { count: 3, cost: 2, max: 5, room: true },
    { count: 3, cost: 3, max: 5, room: false },
    { count: 0, cost: 1, max: 0, room: false },
    { count: 5, cost: 1, max: 3, room: false },
    { count: Number.MAX_SAFE_INTEGER, cost: 1, max: Number.MAX_SAFE_INTEGER, room: false },
    { count: 1, cost: Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER, room: false },
  ])('S11: $cost more on $count of $max fits: $room', ({ count, cost, max, room }) => {
    const state = counters(100, count);
    expect(fits(state, 1, max, 50, cost, 120)).toBe(room);
    expect(state).toEqual(counters(100, count));
  });

  it('S4: the count of an instance does not matter once it is over', () => {
    expect([149, 150].map((now) => fits(counters(100, 5), 1, 5, 50, 5, now))).toEqual([false, true]);
    expect(fits(counters(NEVER, NEVER), 1, 5, 50, 5, 0)).toBe(true);
    expect(fits(counters(NEVER, NEVER), 1, 5, 50, 6, 0)).toBe(false);
  });

  it('S4: a later request counts without moving the instance', () => {
    const state = counters(100, 3);
    expect(add(state, 1, 50, 2, 149)).toBe(false);
    expect(state).toEqual(counters(100, 5));
  });

  it('S4: a request starts an instance if none is active, and nothing is left of the last one', () => {
    for (const state of [counters(100, 3), counters(NEVER, NEVER)]) {
      expect(add(state, 1, 50, 2, 150)).toBe(true);
      expect(state).toEqual(counters(150, 2));
    }
  });

  it.each([
    [3, -2, 1],
    [3, -4, 0],
    [3, 0, 3],
    [3, 4, 7],
    [Number.MAX_SAFE_INTEGER - 1, 2, Number.MAX_SAFE_INTEGER],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  ])('S13: a count of %i that is changed by %i is %i, and the instance stays active', (count, change, after) => {
    const state = counters(100, count);
    expect(settleWindow(state, 1, 50, 100, change, 149)).toBe(true);
    expect(state).toEqual(counters(100, after));
  });

  it('S13: settling changes neither another instance nor one that is over', () => {
    const state = counters(100, 3);
    expect(settleWindow(state, 1, 50, 99, -2, 120)).toBe(false);
    expect(settleWindow(state, 1, 50, 100, -2, 150)).toBe(false);
    expect(settleWindow(state, 1, 50, NEVER, -2, 120)).toBe(false);
    expect(state).toEqual(counters(100, 3));
  });

  it('a window is two numbers', () => {
    expect(SLOTS_PER_WINDOW).toBe(2);
  });
});
