import { describe, expect, it } from 'vitest';
import { assertEqual } from '../../src/testing/assert-equal.ts';

describe('assertEqual', () => {
  it('does not count the order of properties, at any depth', () => {
    assertEqual([{ a: 1, b: { c: 2, d: undefined } }], [{ b: { d: undefined, c: 2 }, a: 1 }]);
  });

  it.each([
    [[1, 2], [2, 1], 'the store returned [1,2], the model expects [2,1]'],
    [{ a: undefined }, {}, 'the store returned {"a":"undefined"}, the model expects {}'],
  ])('distinguishes %j from %j', (one, other, message) => {
    expect(() => assertEqual(one, other)).toThrow(message);
  });
});
