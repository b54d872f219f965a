import { describe, expect, it } from 'vitest';
import { Names, UNKNOWN } from '../../../src/stores/memory/names.ts';

describe('names in memory', () => {
  it('S18: are forgotten with their last reference, and their numbers used again: routes of the network cannot pile up', () => {
    const names = new Names();
    const [a, b] = [names.acquire('a'), names.acquire('b')];
    expect(names.acquire('a')).toBe(a);
    names.release(a);
    expect(names.find('a')).toBe(a);
    names.release(a);
    expect(names.find('a')).toBe(UNKNOWN);
    expect(names.acquire('c')).toBe(a);
    expect(names.find('b')).toBe(b);
  });

  it('S14: a name that was retired is another name when it comes again, and the old one leaves with its references', () => {
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
