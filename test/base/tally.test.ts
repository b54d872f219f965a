import { describe, expect, it } from 'vitest';
import { Tally } from '../../src/base/tally.ts';
import { heapUsed } from '../support/heap.ts';

describe('a tally', () => {
  it('has the amount of each owner, and their sum', () => {
    const tally = new Tally();
    tally.add('a', 2);
    tally.add('b', 3);
    tally.add('a', -1);
    expect([tally.of('a'), tally.of('b'), tally.of('c'), tally.total]).toEqual([1, 3, 0, 4]);
  });

  it('an owner that has given everything back has nothing in use', () => {
    const tally = new Tally();
    tally.add('a', 2);
    tally.add('a', -2);
    expect([tally.of('a'), tally.total]).toEqual([0, 0]);
  });

  it('does not grow with owners that have given everything back', () => {
    const tally = new Tally();
    const before = heapUsed();
    for (let i = 0; i < 50_000; i++) {
      tally.add(`owner ${i}`, 1);
      tally.add(`owner ${i}`, -1);
    }
    expect(heapUsed() - before).toBeLessThan(1_000_000);
    expect(tally.total).toBe(0);
  });
});
