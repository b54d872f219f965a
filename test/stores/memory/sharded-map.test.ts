import { describe, expect, it } from 'vitest';
import { ShardedMap } from '../../../src/stores/memory/sharded-map.ts';
import { heapUsed } from '../../support/heap.ts';

const SMALL = 1_000;
const LARGE = 262_144;
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Names that have much in common. */
const SIMILAR = {
  numbers: (i: number) => `${i}`,
  // The digits are among the 16 characters that choose the shard.
  longNumbers: (i: number) => String(i).padStart(8, '0').replaceAll(/\d/g, '=======$&'),
  upperAndLowerCase: (i: number) =>
    range(14)
      .map((bit) => ((i >> bit) & 1 ? 'a' : 'A'))
      .join(''),
};

it.each([
  [1, 1],
  [65_536, 1],
  [65_537, 9],
  [LARGE, 32],
])('a map for %i entries has %i shards', (maxEntries, shards) => {
  expect(new ShardedMap(maxEntries).shards).toBe(shards);
});

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

  it('spreads names evenly over its shards', () => {
    const map = new ShardedMap<string>(maxEntries);
    const names = range(16_384);
    for (const nameOf of Object.values(SIMILAR)) for (const i of names) map.set(nameOf(i), nameOf.name);
    for (const kind of Object.keys(SIMILAR)) {
      const counts = range(map.shards).map((shard) => [...map.valuesOf(shard)].filter((each) => each === kind).length);
      const even = names.length / map.shards;
      expect(Math.min(...counts)).toBeGreaterThan(even * 0.75);
      expect(Math.max(...counts)).toBeLessThan(even * 1.25);
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
