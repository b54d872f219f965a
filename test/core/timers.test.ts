import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSystemTimers } from '../../src/core/timers.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** How many timers of the platform two calls in the background with one delay set. */
function timersOfTwoCalls(): number {
  const timers = createSystemTimers();
  for (let i = 0; i < 2; i++) timers.after(1_000, () => {}, true);
  return vi.getTimerCount();
}

describe('the timers of the platform', () => {
  it('call once after the delay, in the background or not, and not if they are cancelled', () => {
    const timers = createSystemTimers();
    const called: string[] = [];
    for (const background of [true, false]) {
      timers.after(1_000, () => called.push(`after, ${background}`), background);
      timers.after(1_000, () => called.push(`cancelled, ${background}`), background)();
    }
    vi.advanceTimersByTime(999);
    expect(called).toEqual([]);
    vi.advanceTimersByTime(10_000);
    expect(called.sort()).toEqual(['after, false', 'after, true']);
  });

  it('wait for a delay that setTimeout does not accept', () => {
    const call = vi.fn();
    createSystemTimers().after(2 ** 31, call, false);
    vi.advanceTimersByTime(2 ** 31 - 2);
    expect(call).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(call).toHaveBeenCalledTimes(1);
  });

  it('share a timer in the background, so that a process can exit', () => {
    const set = vi.spyOn(globalThis, 'setTimeout');
    expect(timersOfTwoCalls()).toBe(1);
    const [timer] = set.mock.results;
    expect(timer?.value.hasRef()).toBe(false);
  });

  it('are not shared on Cloudflare Workers, where a timer ends with its request', () => {
    vi.stubGlobal('navigator', { userAgent: 'Cloudflare-Workers' });
    expect(timersOfTwoCalls()).toBe(2);
  });

  it('are not shared on an unknown platform', () => {
    vi.stubGlobal('process', undefined);
    const count = timersOfTwoCalls();
    vi.unstubAllGlobals();
    expect(count).toBe(2);
  });
});
