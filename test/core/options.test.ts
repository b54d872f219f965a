import { describe, expect, it } from 'vitest';
import { checkOptions, isPlainObject } from '../../src/core/options.ts';

describe('a plain object', () => {
  it.each([[{}], [{ a: 1 }], [Object.create(null)]])('%j is one', (value) => expect(isPlainObject(value)).toBe(true));

  it.each([[null], [undefined], [7], ['x'], [[]], [new Map()], [new Date()], [Promise.resolve()], [() => ({})]])(
    '%s is none',
    (value) => expect(isPlainObject(value)).toBe(false),
  );
});

it('a misspelt option is refused by name and place', () => {
  expect(() => checkOptions({ maxKeys: 1 }, ['maxKeys', 'clock'], 'options')).not.toThrow();
  expect(() => checkOptions({ maxkeys: 1 }, ['maxKeys', 'clock'], 'options')).toThrow(
    'options.maxkeys: is no option; known are maxKeys, clock, got 1',
  );
  expect(() => checkOptions(undefined as never, ['maxKeys', 'clock'], 'options')).toThrow(
    'options: must be a plain object of maxKeys, clock, got undefined',
  );
});
