import { describe, expect, it, vi } from 'vitest';
import { createMisuseLog, isSeconds, MisuseWarning } from '../../src/core/misuse.ts';

describe('a log of misuse', () => {
  it('logs each code once, as an error with a name, a code and a page', () => {
    const logger = vi.fn();
    const misuse = createMisuseLog({ logger });
    misuse?.warn('HG_NO_ACCOUNT', 'No account.');
    misuse?.warn('HG_NO_ACCOUNT', 'No account again.');
    misuse?.warn('HG_GATE_TWICE', 'Twice.');
    expect(logger.mock.calls.map(([message]) => message)).toEqual([
      'headgate: HG_NO_ACCOUNT',
      'headgate: HG_GATE_TWICE',
    ]);
    const [, error] = logger.mock.calls[0] as [string, MisuseWarning];
    expect(error).toBeInstanceOf(MisuseWarning);
    expect(error).toMatchObject({
      name: 'MisuseWarning',
      code: 'HG_NO_ACCOUNT',
      message: 'No account.',
    });
    expect(error.stack).toBe(`MisuseWarning: ${error.message}`);
  });

  it('there is none if `validate` is false', () => {
    expect(createMisuseLog({ validate: false })).toBeUndefined();
  });

  it.each([0, 'no', null])('%j is neither true nor false', (validate) => {
    expect(() => createMisuseLog({ validate: validate as never })).toThrow(/^validate: must be true or false, got /);
  });

  it('checks the logger also if `validate` is false', () => {
    expect(() => createMisuseLog({ validate: false, logger: 'stderr' as never })).toThrow(/^logger: must be /);
  });
});

describe('a number of seconds in place of milliseconds', () => {
  const DAY = 86_400;

  it.each([60, 300, 900, 3_600, 7_200, DAY, 3 * DAY, 7 * DAY, 10 * DAY, 30 * DAY])('%d is found', (seconds) => {
    expect([isSeconds(seconds), isSeconds(seconds * 1_000)]).toEqual([true, false]);
  });

  it.each([0, 1, 50, 100, 500, 1_000, 1_500, 5_000, 30_000, 600_000])('%d ms is not taken for one', (ms) => {
    expect(isSeconds(ms)).toBe(false);
  });
});
