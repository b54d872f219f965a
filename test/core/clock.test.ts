import { afterEach, describe, expect, it, vi } from 'vitest';
import { OptionError } from '../../src/base/errors.ts';
import { monotonicClock } from '../../src/core/clock.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('the monotonic clock', () => {
  it('S15: returns whole milliseconds since 1970, and never goes back', () => {
    const times = Array.from({ length: 1000 }, () => monotonicClock.now());
    expect(times.every(Number.isSafeInteger)).toBe(true);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(Math.abs(monotonicClock.now() - Date.now())).toBeLessThan(60_000);
  });

  it('S15: follows the monotonic timer, rounded down, whatever the wall clock says', () => {
    vi.spyOn(Date, 'now').mockReturnValue(0);
    const timer = vi.spyOn(performance, 'now');
    const origin = Math.floor(performance.timeOrigin);
    timer.mockReturnValue(0);
    const start = monotonicClock.now();
    timer.mockReturnValue(86_400_000);
    expect([start, monotonicClock.now()]).toEqual([origin, origin + 86_400_000]);
    timer.mockReturnValue(1 - (performance.timeOrigin - origin) - 0.001);
    expect(monotonicClock.now()).toBe(origin);
  });
});

describe('the fake clock', () => {
  it('S15: does not move until it is moved, forwards or back', () => {
    const clock = createFakeClock();
    expect([clock.now(), clock.now()]).toEqual([0, 0]);
    clock.advance(5);
    clock.advance(-2);
    expect(clock.now()).toBe(3);
    clock.set(-100);
    expect(clock.now()).toBe(-100);
    expect(createFakeClock(7).now()).toBe(7);
  });

  it.each([0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1' as never])(
    'S15: refuses %s, and does not move',
    (bad) => {
      const clock = createFakeClock(7);
      expect(() => createFakeClock(bad)).toThrow(OptionError);
      expect(() => clock.advance(bad)).toThrow(/^ms: /);
      expect(() => clock.set(bad)).toThrow(/^ms: /);
      expect(clock.now()).toBe(7);
    },
  );

  it('S15: refuses to leave the safe integers', () => {
    const clock = createFakeClock(Number.MAX_SAFE_INTEGER);
    expect(() => clock.advance(1)).toThrow(/^now: /);
    expect(clock.now()).toBe(Number.MAX_SAFE_INTEGER);
  });
});
