import { describe, expect, it } from 'vitest';
import { isHeadgateError } from '../../src/base/errors.ts';
import { checkInteger, checkOptions, isPlainObject } from '../../src/base/options.ts';

describe('a plain object', () => {
  it.each([[{}], [{ a: 1 }], [Object.create(null)]])('%j is one', (value) => expect(isPlainObject(value)).toBe(true));

  it.each([[null], [undefined], [7], ['x'], [[]], [new Map()], [new Date()], [Promise.resolve()], [() => ({})]])(
    '%s is not one',
    (value) => expect(isPlainObject(value)).toBe(false),
  );
});

describe('checkOptions', () => {
  const known = ['maxKeys', 'clock'];

  it('refuses a misspelt option; the error names the place and the known options', () => {
    expect(() => checkOptions({ maxKeys: 1 }, known, 'options')).not.toThrow();
    expect(() => checkOptions({ maxkeys: 1 }, known, 'options')).toThrow(
      'options.maxkeys: unknown option (expected maxKeys or clock), got 1',
    );
    expect(() => checkOptions({ b: 1 }, ['a'], 'options')).toThrow('options.b: unknown option (expected a), got 1');
    expect(() => checkOptions({ d: 1 }, ['a', 'b', 'c'], 'options')).toThrow('(expected a, b or c)');
    expect(() => checkOptions(undefined as never, known, 'options')).toThrow(
      'options: must be a plain object (expected maxKeys or clock), got undefined',
    );
  });

  it('does not show the text of an unknown option, because it can be a misspelt secret', () => {
    let error: unknown;
    try {
      checkOptions({ secert: 'hunter2' }, known, 'options');
    } catch (thrown) {
      error = thrown;
    }
    expect(isHeadgateError(error, 'invalid_option')).toBe(true);
    expect((error as Error).message).toBe('options.secert: unknown option (expected maxKeys or clock), got a string');
  });
});

it('the message of an integer says its range', () => {
  expect(() => checkInteger('most', 0, 1)).toThrow('most: must be an integer of 1 or more, got 0');
  expect(() => checkInteger('most', 9, 1, 8)).toThrow('most: must be an integer from 1 to 8, got 9');
  expect(() => checkInteger('most', 8, 1, 8)).not.toThrow();
});
