import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ALL_SLOTS, NO_SLOTS, SlotSet } from '../../../src/stores/redis/slot-set.ts';

const slot = fc.nat({ max: 16_383 });
const ranges = fc.array(
  fc.tuple(slot, slot).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const),
  { maxLength: 20 },
);
/** The slots of the tests that are in the set. */
const listOf = (set: SlotSet): number[] =>
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16_382, 16_383].filter((i) => !set.and(SlotSet.of([[i, i]])).isEmpty);

describe('a set of slots', () => {
  it('joins, divides and subtracts as sets of numbers do', () => {
    const a = SlotSet.of([
      [0, 5],
      [9, 9],
    ]);
    const b = SlotSet.of([
      [5, 7],
      [16_383, 16_383],
    ]);
    expect(listOf(a.or(b))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 9, 16_383]);
    expect(listOf(a.and(b))).toEqual([5]);
    expect(listOf(a.without(b))).toEqual([0, 1, 2, 3, 4, 9]);
    expect([NO_SLOTS.isEmpty, ALL_SLOTS.isEmpty, ALL_SLOTS.without(ALL_SLOTS).isEmpty]).toEqual([true, false, true]);
  });

  it('is a short text, and the text is the set', () => {
    const check = fc.property(ranges, (given) => {
      const set = SlotSet.of(given);
      const read = SlotSet.parse(String(set)) as SlotSet;
      expect(String(set).length).toBeLessThan(400);
      expect(read.without(set).isEmpty && set.without(read).isEmpty).toBe(true);
    });
    fc.assert(check, { numRuns: 200 });
    expect([String(ALL_SLOTS), String(NO_SLOTS)]).toEqual(['_*2730.8', 'A*2731.']);
  });

  it('is a text of bounded length, even if every second slot is in it', () => {
    const every = SlotSet.of(Array.from({ length: 8_192 }, (_, i) => [2 * i, 2 * i] as const));
    expect(String(every).length).toBeLessThanOrEqual(2_731);
    expect(SlotSet.parse(String(every))?.without(every).isEmpty).toBe(true);
  });

  it.each([
    '',
    'A',
    '_*2731.',
    'A*2730.',
    'A*9999.'.repeat(300),
    'A'.repeat(2_731),
    `A*2731.${'A'.repeat(9_000)}`,
    '!',
  ])('is not read from any other text: %.20s', (text) => expect(SlotSet.parse(text)).toBeUndefined());
});
