import { describe, expect, it } from 'vitest';
import { Names, UNKNOWN } from '../../../src/stores/memory/names.ts';

describe('names in memory', () => {
  it('S18: are deleted with their last reference, and their numbers are reused: routes from the network cannot pile up', () => {
    const names = new Names();
    const [a, b] = [names.acquire('a'), names.acquire('b')];
    expect([a, b]).toEqual([0, 1]);
    expect(names.acquire('a')).toBe(a);
    names.release(a);
    expect(names.find('a')).toBe(a);
    names.release(a);
    expect(names.find('a')).toBe(UNKNOWN);
    expect(names.acquire('c')).toBe(a);
    expect(names.find('b')).toBe(b);
  });

  it('S14: a retired name gets a new number when it is used again, and the old number is reused after its last reference', () => {
    const names = new Names();
    const old = names.acquire('a');
    expect(names.isRetired(old)).toBe(false);
    names.retire('a');
    expect([names.find('a'), names.isRetired(old)]).toEqual([UNKNOWN, true]);
    const next = names.acquire('a');
    expect(next).not.toBe(old);
    names.release(old);
    expect([names.find('a'), names.isRetired(next)]).toEqual([next, false]);
    expect(names.acquire('b')).toBe(old);
  });
});
