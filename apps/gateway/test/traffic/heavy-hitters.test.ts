import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HeavyHitters } from '../../src/traffic/heavy-hitters.ts';

const MINUTE_MS = 60_000;

/** The exact counts. */
function countAll(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

it('no count is too low, none is too high by more than its error, and frequent names are never missing', () => {
  const names = fc.array(fc.integer({ min: 0, max: 30 }).map(String), { maxLength: 400 });
  fc.assert(
    fc.property(names, fc.integer({ min: 1, max: 12 }), (list, size) => {
      const hitters = new HeavyHitters<number>(size);
      for (const [i, name] of list.entries()) hitters.add(name, i, 0);
      const exact = countAll(list);
      const found = hitters.list(0);
      expect(found.length).toBe(Math.min(size, exact.size));
      expect(hitters.isExact).toBe(exact.size <= size);
      for (const { name, count, error, lastMinute, note } of found) {
        const real = exact.get(name) as number;
        expect(count).toBeGreaterThanOrEqual(real);
        expect(count - error).toBeLessThanOrEqual(real);
        expect(note).toBe(list.lastIndexOf(name));
        expect(lastMinute).toBe(count - error);
        if (hitters.isExact) expect([count, error]).toEqual([real, 0]);
      }
      expect(found.reduce((sum, { count }) => sum + count, 0)).toBe(list.length);
      for (const [name, count] of exact)
        if (count > list.length / size) expect(found.map((each) => each.name)).toContain(name);
    }),
  );
});

it('of 100,000 rotating names the 20 heaviest are right', () => {
  const hitters = new HeavyHitters<undefined>(1_024);
  for (let i = 0; i < 300_000; i++) {
    hitters.add(`rare_${i % 100_000}`, undefined, 0);
    // The heaviest come 20 to 40 times as often as a counter is taken over.
    if (i % 4 === 0) hitters.add(`heavy_${(i / 4) % 20}`, undefined, 0);
  }
  const top = hitters.list(0).sort((a, b) => b.count - b.error - (a.count - a.error));
  const heaviest = top.slice(0, 20).map(({ name }) => name);
  expect(heaviest.sort()).toEqual(Array.from({ length: 20 }, (_, i) => `heavy_${i}`).sort());
  expect(hitters.list(0)).toHaveLength(1_024);
});

it('of the last minute it counts at least the last 50 seconds, and never more than 60', () => {
  const steps = fc.array(fc.tuple(fc.integer({ min: 0, max: 70_000 }), fc.constantFrom('a', 'b', 'c')), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(steps, fc.integer({ min: 0, max: 70_000 }), (list, pauseMs) => {
      const hitters = new HeavyHitters<undefined>(2);
      const times: [number, string][] = [];
      let now = 0;
      for (const [ms, name] of list) {
        now += ms;
        hitters.add(name, undefined, now);
        times.push([now, name]);
      }
      now += pauseMs;
      const within = (name: string, ms: number) => times.filter(([at, each]) => each === name && now - at < ms).length;
      for (const { name, lastMinute } of hitters.list(now)) {
        expect(lastMinute).toBeLessThanOrEqual(within(name, MINUTE_MS));
        if (hitters.isExact) expect(lastMinute).toBeGreaterThanOrEqual(within(name, MINUTE_MS - 10_000));
      }
    }),
  );
});

it('a clock that is set back begins the last minute anew', () => {
  const hitters = new HeavyHitters<undefined>(1);
  const lastMinute = (nowMs: number) => hitters.get('a', nowMs)?.lastMinute;
  hitters.add('a', undefined, 10 * MINUTE_MS);
  expect(lastMinute(9 * MINUTE_MS)).toBe(0);
  hitters.add('a', undefined, 9 * MINUTE_MS);
  expect([lastMinute(9 * MINUTE_MS), lastMinute(10 * MINUTE_MS)]).toEqual([1, 0]);
});
