import { describe, expect, it } from 'vitest';
import { ShardedMap } from '../../../src/stores/memory/sharded-map.ts';
import { heapUsed } from '../../support/heap.ts';

const SMALL = 1_000;
const LARGE = 200_000;

describe.each([SMALL, LARGE])('a map for %i entries', (maxEntries) => {
  const keys = ['', 'a', 'b', 'x'.repeat(300), ...Array.from({ length: SMALL }, (_, i) => `account ${i}`)];

  it('finds each key, until it is deleted', () => {
    const map = new ShardedMap<number>(maxEntries);
    for (const [i, key] of keys.entries()) map.set(key, i);
    expect(keys.map((key) => map.get(key))).toEqual(keys.map((_, i) => i));
    map.delete('a');
    map.set('b', -1);
    expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([undefined, -1, undefined]);
  });

  it('nextKey returns every key once per round', () => {
    const map = new ShardedMap<number>(maxEntries);
    expect(map.nextKey()).toBeUndefined();
    for (const [i, key] of keys.entries()) map.set(key, i);
    for (let round = 0; round < 2; round++) {
      const seen = new Set<string>();
      while (seen.size < keys.length) {
        const key = map.nextKey();
        if (key === undefined) continue;
        expect(seen.has(key)).toBe(false);
        seen.add(key);
      }
    }
  });

  it('does not grow if keys come and go, even if nextKey is never called', () => {
    const map = new ShardedMap<number>(maxEntries);
    const churn = (from: number, to: number): void => {
      for (let i = from; i < to; i++) {
        map.set(`key ${i}`, i);
        map.delete(`key ${i - SMALL}`);
      }
    };
    churn(0, 50_000);
    const before = heapUsed();
    churn(50_000, 350_000);
    expect(heapUsed() - before).toBeLessThan(10_000_000);
  });
});
