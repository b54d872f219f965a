import { describe, expect, it } from 'vitest';
import { MAX_WINDOWS, NOWHERE, Slab } from '../../../src/stores/memory/slab.ts';

describe('records in memory', () => {
  it('S18: a released record is reused by the next of its size, and is empty', () => {
    const slab = new Slab();
    const [a, b, c] = [slab.allocate(2), slab.allocate(2), slab.allocate(3)];
    slab.save(a, Float64Array.of(1, 2, 3, 4), 0, 2);
    slab.release(a, 2);
    slab.release(b, 2);
    expect([slab.allocate(2), slab.allocate(2)]).toEqual([b, a]);
    expect([...slab.counters(a, 2)].filter((_, i) => i % 2 === 0)).toEqual([-Infinity, -Infinity]);
    expect(slab.allocate(2)).toBeGreaterThan(c);
  });

  it.each([1, 4, 20, 1_000, MAX_WINDOWS])('no two records with %d windows overlap', (windows) => {
    const slab = new Slab();
    const addresses = Array.from({ length: Math.ceil(100_000 / windows) + 2 }, () => slab.allocate(windows));
    const countersOf = (value: number) => new Float64Array(windows * 2).fill(value);
    for (const [i, address] of addresses.entries()) slab.save(address, countersOf(i), 0, windows);
    const read = new Float64Array(windows * 2);
    const isRight = (address: number, i: number): boolean => {
      slab.load(address, read, 0, windows);
      return [read, slab.counters(address, windows)].every((counters) => counters.every((value) => value === i));
    };
    expect(addresses.filter((address, i) => !isRight(address, i))).toEqual([]);
  });

  it('load and save copy the given windows; nothing is read for NOWHERE', () => {
    const slab = new Slab();
    const address = slab.allocate(1);
    slab.save(address, Float64Array.of(1, 2, 3, 4, 5, 6), 1, 2);
    const read = new Float64Array(6).fill(9);
    slab.load(address, read, 2, 3);
    slab.load(NOWHERE, read, 0, 3);
    expect([...read]).toEqual([9, 9, 9, 9, 3, 4]);
  });
});
