import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HeavyHitters } from '../../../src/gateway/traffic/heavy-hitters.ts';

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
      for (const [i, name] of list.entries()) hitters.add(name, i);
      const exact = countAll(list);
      const found = hitters.list();
      expect(found.length).toBe(Math.min(size, exact.size));
      expect(hitters.isExact).toBe(exact.size <= size);
      for (const { name, count, error, note } of found) {
        const real = exact.get(name) as number;
        expect(count).toBeGreaterThanOrEqual(real);
        expect(count - error).toBeLessThanOrEqual(real);
        expect(note).toBe(list.lastIndexOf(name));
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
    hitters.add(`rare_${i % 100_000}`, undefined);
    // The heaviest come 20 to 40 times as often as a counter is taken over.
    if (i % 4 === 0) hitters.add(`heavy_${(i / 4) % 20}`, undefined);
  }
  const top = hitters.list().sort((a, b) => b.count - b.error - (a.count - a.error));
  const heaviest = top.slice(0, 20).map(({ name }) => name);
  expect(heaviest.sort()).toEqual(Array.from({ length: 20 }, (_, i) => `heavy_${i}`).sort());
  expect(hitters.list()).toHaveLength(1_024);
});
