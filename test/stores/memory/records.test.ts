import { describe, expect, it } from 'vitest';
import { Records } from '../../../src/stores/memory/records.ts';
import { NOWHERE } from '../../../src/stores/memory/slab.ts';
import { partOf } from '../../../src/stores/memory/window-set-part.ts';
import { windowSetFrom } from '../../support/window-set.ts';

const NOW = 1_000_000;
const [MINUTE, HOUR] = [partOf(windowSetFrom(['9/1m']).windows), partOf(windowSetFrom(['9/1h']).windows)];
/** Up to 8 records of an account are a list, more are a map. */
const COUNTS = [1, 2, 7, 8, 9, 20];
const routesOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `r${i}`);

/** Adds a record whose window has started, unless it is over from the start. */
function add(records: Records, account: string, route: string, isOver = false): number {
  const address = records.add(account, route, MINUTE);
  if (!isOver) records.view(address).counters[0] = NOW;
  return address;
}

describe('find()', () => {
  it('S1: finds a record once it is there, if its route or its windows were unknown before', () => {
    const records = new Records(10);
    for (const [route, part] of [
      ['r', MINUTE],
      ['r', HOUR],
      ['s', HOUR],
    ] as const) {
      expect(records.find('a', route, part)).toBe(NOWHERE);
      expect(records.find('b', route, part)).toBe(NOWHERE);
      const address = records.add(part === HOUR ? 'a' : 'b', route, part);
      expect(records.find(part === HOUR ? 'a' : 'b', route, part)).toBe(address);
    }
  });

  it.each(COUNTS)('S1: finds each of %i routes of an account, and only with its windows', (count) => {
    const records = new Records(100);
    const addresses = routesOf(count).map((route) => add(records, 'a', route));
    expect(new Set(addresses).size).toBe(count);
    records.add('b', 'r0', HOUR);
    for (const [i, route] of routesOf(count).entries()) {
      expect([records.find('a', route, MINUTE), records.findAny('a', route)]).toEqual([addresses[i], addresses[i]]);
      expect(records.find('a', route, HOUR)).toBe(NOWHERE);
    }
    for (const route of ['another', 'r'])
      expect([records.find('a', route, MINUTE), records.findAny('a', route)]).toEqual([NOWHERE, NOWHERE]);
    expect(records.findAny('another', 'r0')).toBe(NOWHERE);
  });
});

describe.each(COUNTS)('of an account with %i routes', (count) => {
  const routes = routesOf(count);

  it('S14: each can be removed, and the others stay', () => {
    const records = new Records(100);
    for (const route of routes) add(records, 'a', route);
    for (const [i, route] of routes.entries()) {
      records.remove('a', route);
      records.remove('a', 'another');
      records.remove('another', route);
      expect(routes.filter((each) => records.findAny('a', each) !== NOWHERE)).toEqual(routes.slice(i + 1));
      expect(records.size).toBe(count - i - 1);
    }
  });

  it('S14: a retired one is unknown at once; the sweep deletes it, and no other', () => {
    const records = new Records(100);
    for (const route of routes) add(records, 'a', route);
    expect(records.find('a', 'r0', MINUTE)).not.toBe(NOWHERE);
    records.retireRoute('r0');
    expect(records.find('a', 'r0', MINUTE)).toBe(NOWHERE);
    for (let i = 0; i < 10; i++) records.sweep(1, NOW);
    expect([records.size, records.swept]).toEqual([count - 1, 1]);
  });

  it('S4: those that are over are swept, at most 16 at a time if they are many', () => {
    const records = new Records(100);
    for (const [i, route] of routes.entries()) add(records, 'a', route, i % 3 < 2);
    const most = routes.slice(0, count > 8 ? 16 : count).filter((_, i) => i % 3 < 2).length;
    records.sweep(1, NOW);
    expect(records.swept).toBe(most);
    for (let i = 0; i < 10; i++) records.sweep(1, NOW);
    expect(routes.filter((route) => records.findAny('a', route) !== NOWHERE)).toEqual(
      routes.filter((_, i) => i % 3 === 2),
    );
  });

  it('S18: an account without records is forgotten', () => {
    const records = new Records(100);
    for (const route of routes) add(records, 'a', route);
    add(records, 'b', 'r0', true);
    expect(records.removeWhere('a', () => true)).toBe(count);
    expect(records.removeWhere('a', () => true)).toBe(0);
    records.sweep(1, NOW);
    expect([records.size, records.swept]).toEqual([0, 1]);
  });
});

it('S4: a sweep checks no more accounts than it may', () => {
  const records = new Records(100);
  for (const account of routesOf(50)) add(records, account, 'r', true);
  records.sweep(2, NOW);
  expect(records.swept).toBe(2);
  // The end of the round takes a step.
  records.sweep(49, NOW);
  expect([records.size, records.swept]).toEqual([0, 50]);
});

it('S4: a record stays while one of its windows is active', () => {
  const records = new Records(10);
  const two = partOf(windowSetFrom(['9/1s', '9/1m']).windows);
  const { counters } = records.view(records.add('a', 'r', two));
  for (const active of [2, 0]) {
    counters.fill(Number.NEGATIVE_INFINITY);
    counters[active] = NOW - 500;
    records.sweep(2, NOW);
    expect(records.size).toBe(1);
  }
  records.sweep(2, NOW + 500);
  expect(records.size).toBe(0);
});
