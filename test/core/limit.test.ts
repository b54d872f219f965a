import { describe, expect, it } from 'vitest';
import { LimitError } from '../../src/base/errors.ts';
import { formatWindow, parseLimit, parseWindow } from '../../src/core/limit.ts';

describe('limits', () => {
  it('S3: windows are sorted by duration, in whatever order they were written', () => {
    const day = { max: 5000, durationMs: 86_400_000 };
    const input = ['2/1h', day, '60/1m'];
    expect(parseLimit(input)).toEqual([{ max: 60, durationMs: 60_000 }, { max: 2, durationMs: 3_600_000 }, day]);
    expect(input).toEqual(['2/1h', day, '60/1m']);
  });

  it('S3: a limit has any number of windows, even 0', () => {
    expect(parseLimit([])).toEqual([]);
    expect(parseLimit(Array.from({ length: 50 }, (_, i) => ({ max: i, durationMs: 50 - i })))).toHaveLength(50);
  });

  it('S19: a limit is a frozen copy', () => {
    const window = { max: 1, durationMs: 1000 };
    const limit = parseLimit([window]);
    window.max = 9;
    expect(limit[0]?.max).toBe(1);
    expect([Object.isFrozen(limit), Object.isFrozen(limit[0])]).toEqual([true, true]);
  });

  it('S3: two equal durations are refused; the error names the place and the duration', () => {
    expect(() => parseLimit(['1/1d', '5/60s', '9/1m'], 'limits.routes["POST /x"]')).toThrow(
      /^limits\.routes\["POST \/x"\]: .*distinct durations, got "1m"$/,
    );
  });

  it.each([null, undefined, '60/1m', 5, { max: 1, durationMs: 1 }])('S3: %j is not a limit', (input) => {
    expect(() => parseLimit(input as never, 'limits.allMethods')).toThrow(LimitError);
    expect(() => parseLimit(input as never, 'limits.allMethods')).toThrow(/^limits\.allMethods: a limit is an array/);
  });

  it('S3: an error of a limit without a place names the window', () => {
    expect(() => parseLimit(['1/1s', '1'])).toThrow(/^limit\[1\]: /);
  });

  it.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '5', undefined, null])(
    'S3: max %s is refused; the error names the place and the value',
    (max) => {
      const attempt = (): unknown =>
        parseLimit(['1/1s', { max: max as number, durationMs: 60_000 }], 'limits.allMethods');
      expect(attempt).toThrow(/^limits\.allMethods\[1\]: max must be a non-negative integer, got /);
      expect(attempt).toThrow(expect.objectContaining({ code: 'invalid_limit', place: 'limits.allMethods[1]' }));
    },
  );

  it.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '5', undefined])(
    'S3: durationMs %s is refused; the error shows the value',
    (durationMs) => {
      const attempt = (): unknown => parseWindow({ max: 1, durationMs: durationMs as number });
      expect(attempt).toThrow(/^window: durationMs must be a positive integer of milliseconds, got /);
    },
  );

  it.each(['', '60', '60/', '/1m', '60/1m/1h', '060/1m', '-1/1m', '1.5/1m', '60 / 1m', '60/1\n', '1e3/1s', 'a/1s'])(
    'S3: the text %j is not a window',
    (text) => {
      expect(() => parseWindow(text, 'limits.allMethods[0]')).toThrow(LimitError);
      expect(() => parseWindow(text, 'limits.allMethods[0]')).toThrow(/^limits\.allMethods\[0\]: /);
    },
  );

  it('S3: a max above the safe integers is refused in a text as well', () => {
    expect(parseWindow('9007199254740991/1s').max).toBe(Number.MAX_SAFE_INTEGER);
    expect(() => parseWindow('9007199254740993/1s')).toThrow(/max must be/);
  });

  it.each([null, undefined, 5, true])('S3: %s is not a window', (input) => {
    expect(() => parseWindow(input as never)).toThrow(/^window: a window is "60\/1m" or/);
  });

  it('a window can have a name, however its size is written; a parsed window is parsed again', () => {
    const named = { max: 60, durationMs: 60_000, name: 'per-minute' };
    for (const window of ['60/1m', { max: 60, durationMs: 60_000 }, { ...named, name: 'other' }])
      expect(parseWindow({ name: 'per-minute', window })).toEqual(named);
    expect(parseLimit(parseLimit([named, '5/1s']))).toEqual([{ max: 5, durationMs: 1_000 }, named]);
    expect(formatWindow(parseWindow(named))).toBe('60/1m');
  });

  it.each([
    [{ name: '', window: '1/1s' }, 'limit[0].name: a name has up to 64 letters, digits, ".", "_" and "-", got ""'],
    [{ name: 'a"b', window: '1/1s' }, 'limit[0].name: a name has up to 64'],
    [{ name: 'a b', window: '1/1s' }, 'limit[0].name: a name has up to 64'],
    [{ name: 'a'.repeat(65), window: '1/1s' }, 'limit[0].name: a name has up to 64'],
    [{ name: 5, window: '1/1s' }, 'limit[0].name: a name has up to 64'],
    [{ window: '1/1s' }, 'limit[0].name: a name has up to 64'],
    [
      { name: 'route-1s', window: '1/1s' },
      'limit[0].name: names that begin with "route-" or "all-methods-" are reserved',
    ],
    [{ name: 'a', window: '1/x' }, 'limit[0].window: a duration is'],
    [{ name: 'a', window: '1/1s', max: 5 }, 'limit[0].max: unknown option'],
    [{ name: 'a', windows: '1/1s' }, 'limit[0]: max must be'],
  ])('%j is not a window with a name', (window, message) => {
    expect(() => parseLimit([window as never])).toThrow(message);
  });

  it('two windows of one limit have distinct names', () => {
    const twice = ['1/1s', '2/1m'].map((window) => ({ name: 'burst', window }));
    expect(() => parseLimit(twice, 'limits.allMethods')).toThrow(
      'limits.allMethods: two windows of one limit need distinct names, got "burst"',
    );
  });

  it('S33: a window can have a unit, however it is written; requests are the unit of a window without one', () => {
    const tokens = { max: 30_000, durationMs: 60_000, unit: 'tokens' };
    expect(parseWindow('30000 tokens/1m')).toEqual(tokens);
    expect(parseWindow({ name: 'tpm', window: '30000 tokens/1m' })).toEqual({ ...tokens, name: 'tpm' });
    expect(parseWindow(tokens)).toEqual(tokens);
    expect(formatWindow(tokens)).toBe('30000 tokens/1m');
    for (const window of ['60 requests/1m', { max: 60, durationMs: 60_000, unit: 'requests' }])
      expect(parseWindow(window)).toStrictEqual({ max: 60, durationMs: 60_000 });
  });

  it('S33: windows of several units can have equal durations: requests come first, then the units by name', () => {
    const limit = parseLimit(['5 images/1d', '9 tokens/1m', '7 images/1m', '2/1m']);
    expect(limit.map(formatWindow)).toEqual(['2/1m', '7 images/1m', '9 tokens/1m', '5 images/1d']);
    expect(parseLimit(limit)).toEqual(limit);
    expect(() => parseLimit(['9 tokens/1m', '3/1m', '8 tokens/60s'], 'limits.allMethods')).toThrow(
      /^limits\.allMethods: two windows of one limit with the unit tokens need distinct durations, got "1m"$/,
    );
  });

  it.each(['Tokens', '1x', '-a', 'a.b', 'a#b', 'ü', 'a'.repeat(33), '__proto__'])('S33: %s is not a unit', (unit) => {
    const message = /^limit\[0\]\.unit: a unit has up to 32 lower-case letters/;
    expect(() => parseLimit([`1 ${unit}/1s`])).toThrow(message);
    expect(() => parseLimit([{ max: 1, durationMs: 1, unit }])).toThrow(message);
  });

  it.each(['60 tokens', '60 tokens /1m', '60  tokens/1m', '60 /1m', 'tokens/1m', '60tokens/1m', '60 a b/1m'])(
    'S33: the text %j is not a window',
    (text) => {
      expect(() => parseWindow(text)).toThrow(/^window: a window is max\/duration/);
    },
  );

  it('S9: a window can have max 0', () => {
    expect(parseWindow('0/1m')).toEqual({ max: 0, durationMs: 60_000 });
  });

  it('formatting a parsed window gives the same text', () => {
    for (const text of ['60/1m', '0/1ms', '5000/1d', '1/90s']) expect(formatWindow(parseWindow(text))).toBe(text);
  });
});
