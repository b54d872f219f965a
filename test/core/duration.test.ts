import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LimitError } from '../../src/base/errors.ts';
import { formatDuration, parseDuration } from '../../src/core/duration.ts';

describe('durations', () => {
  it.each([
    ['1ms', 1],
    ['999ms', 999],
    ['30s', 30_000],
    ['1m', 60_000],
    ['24h', 86_400_000],
    ['1d', 86_400_000],
    ['400d', 34_560_000_000],
    ['9007199254740991ms', Number.MAX_SAFE_INTEGER],
  ])('S3: %s is %i ms', (text, durationMs) => {
    expect(parseDuration(text)).toBe(durationMs);
  });

  it.each([
    '',
    's',
    '1',
    '0s',
    '01s',
    '-1s',
    '+1s',
    '1.5s',
    '1e3s',
    '1 s',
    ' 1s',
    '1s ',
    '1s\n',
    '1S',
    '1w',
    '1min',
    '1sms',
    '1m30s',
    '9007199254740992ms',
    '104249992d',
    `${'9'.repeat(400)}d`,
  ])('S3: %j is not a duration, and the error names the place and the value', (text) => {
    expect(() => parseDuration(text, 'limits.allMethods[1]')).toThrow(LimitError);
    expect(() => parseDuration(text, 'limits.allMethods[1]')).toThrow(
      /^limits\.allMethods\[1\]: .*ms, s, m, h, d.*, got "/,
    );
    expect(() => parseDuration(text)).toThrow(/^duration: /);
  });

  it.each([
    [1, '1ms'],
    [1_500, '1500ms'],
    [90_000, '90s'],
    [60_000, '1m'],
    [5_400_000, '90m'],
    [3_600_000, '1h'],
    [90_000_000, '25h'],
    [172_800_000, '2d'],
    // Not a valid duration, but an error message can have to name it.
    [0.5, '0.5ms'],
  ])('%f ms is formatted as %s', (durationMs, text) => {
    expect(formatDuration(durationMs)).toBe(text);
  });

  it('S3: parsing a formatted duration gives the same value, to the millisecond', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        fc.constantFrom(1, 1_000, 60_000),
        (n, unit) => {
          const durationMs = Math.ceil(n / unit) * unit;
          fc.pre(Number.isSafeInteger(durationMs));
          expect(parseDuration(formatDuration(durationMs))).toBe(durationMs);
        },
      ),
    );
  });
});
