import fc from 'fast-check';
import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { describe, expect, it } from 'vitest';
import { activeAt, answerAt, MAX_REQUESTS, play, windowRows } from '../playground/history.ts';
import { isFault, type LimitTexts, type PlaygroundLimits, readLimits, SUBJECT } from '../playground/limits.ts';
import { formatMs } from '../playground/moments.ts';
import { PRESETS } from '../playground/presets.ts';
import { decode, encode, MAX_LINK } from '../playground/share.ts';
import { explain, verdict } from '../playground/words.ts';
import { histories } from './support/histories.ts';

const limitsOf = (texts: LimitTexts): PlaygroundLimits => {
  const limits = readLimits(texts);
  if (isFault(limits)) throw new Error(limits.message);
  return limits;
};

describe('the playground, without a page', () => {
  it('shows windows that are those of the limiter at any moment', () => {
    fc.assert(
      fc.property(histories, fc.nat({ max: 120_000 }), ({ current, moments }, atMs) => {
        const limits = limitsOf(current);
        const until = moments.filter((moment) => moment <= atMs);
        const rows = windowRows(play(limits, moments), limits).map((row) => activeAt(row, atMs)?.used ?? 0);

        let now = 0;
        const store = createMemoryStore({ clock: { now: () => now } });
        const limiter = createLimiter({ store, limits, validate: false });
        for (now of until) limiter.consumeSync(SUBJECT);
        now = atMs;
        const { windows } = limiter.plan(SUBJECT);
        const peeked = store.peek(SUBJECT.account, SUBJECT.route, limiter.plan(SUBJECT));
        expect(rows).toEqual(windows.map(({ max }, index) => max - (peeked[index]?.remaining ?? 0)));
        expect(answerAt(limits, moments, atMs).decision.toJSON()).toEqual(limiter.consumeSync(SUBJECT).toJSON());
      }),
      { numRuns: 300 },
    );
  });

  it('explains each decision: who rejected, until when, and that nothing is charged', () => {
    const limits = limitsOf({ route: '2/10s', allMethods: '3/1m' });
    const [first, , third, fourth, fifth] = play(limits, [1_000, 2_000, 3_500, 11_000, 12_000]);
    if (!first || !third || !fourth || !fifth) throw new Error('five answers');
    expect(explain(first)).toEqual([
      'Every window has room, and each is charged 1.',
      'This request starts Route 2/10s and All methods 3/1m, because they were not active.',
      'The headers show the last window, All methods 3/1m: 2 of 3 left, for 1 min.',
    ]);
    expect(verdict(third)).toBe('rejected by Route 2/10s');
    expect(explain(third)).toEqual([
      'Route 2/10s is full: 2 of 2 are used since 1 s.',
      'The request is rejected, and no window is charged.',
      'This window ends at 11 s, in 7.5 s. retry-after has whole seconds, rounded up: 8. A client that waits so long gets past this window.',
    ]);
    expect([verdict(fourth), verdict(fifth)]).toEqual(['accepted', 'rejected by All methods 3/1m']);
    expect([0, 950, 61_000, 90_000_000].map(formatMs)).toEqual(['0 s', '0.95 s', '1 min 1 s', '1 d 1 h']);
  });

  it('shows the errors of the library, at the field that they are about', () => {
    const fault = (route: string, allMethods: string) => readLimits({ route, allMethods });
    expect(fault('', '60')).toEqual({
      field: 'allMethods',
      message: 'limits.allMethods[0]: a window is max/duration, such as "60/1m", got "60"',
    });
    expect(fault('1/1.5s', '60/1m')).toMatchObject({ field: 'route', message: expect.stringContaining('got "1.5s"') });
    expect(fault('', '3/1m, 4/60s')).toMatchObject({ message: expect.stringContaining('distinct durations') });
    expect(fault('', ' ')).toMatchObject({
      field: 'allMethods',
      message: expect.stringContaining('must have a window'),
    });
    expect(fault('', '1/1s 1/2s 1/3s 1/4s 1/5s 1/6s 1/7s')).toMatchObject({
      message: expect.stringContaining('got 7'),
    });
  });

  it('has examples that show what their lesson says', () => {
    const rejected = PRESETS.map(({ current, moments }) =>
      play(limitsOf(current), moments)
        .filter(({ decision }) => !decision.accepted)
        .map(verdict),
    );
    expect(rejected.map((all) => [all.length, [...new Set(all)].sort()])).toEqual([
      [2, ['rejected by All methods 3/10s', 'rejected by All methods 5/30s']],
      [2, ['rejected by Route 10/1m']],
      [expect.any(Number), ['rejected by All methods 12/30s', 'rejected by All methods 2/1s']],
      [2, ['rejected by All methods 5/1d']],
      [1, ['rejected by All methods 6/30s']],
    ]);
  });
});

describe('links of the playground', () => {
  it('bring back what was shared, in at most 2 kB', () => {
    fc.assert(
      fc.property(histories, (state) => {
        const link = encode(state);
        expect(link?.length).toBeLessThanOrEqual(MAX_LINK);
        expect(decode(link as string)).toEqual(state);
      }),
    );
    for (const { name: _name, lesson: _lesson, ...state } of PRESETS) {
      expect(decode(encode(state) as string)).toEqual(state);
    }
  });

  it('are not written if they would be too long or have invalid limits', () => {
    const moments = Array.from({ length: MAX_REQUESTS }, (_, index) => index * 150_000_000);
    const long = { route: '', allMethods: '123456789/1000001ms,'.repeat(6).slice(0, -1) };
    expect(encode({ current: { route: '', allMethods: 'x' }, candidate: undefined, moments: [], spanMs: 1_000 })).toBe(
      undefined,
    );
    expect(encode({ current: long, candidate: undefined, moments, spanMs: 1_000 })).toBe(undefined);
  });

  it.each([
    [`a=3/10s&s=1o&t=${'0.'.repeat(900)}`, 'more than 200 requests'],
    [`a=3/10s&s=1o&t=${'0'.repeat(3_000)}`, 'longer than 2048'],
    ['a=3/10s&s=1o&t=zzzzzzzz', 'later than a year'],
    ['a=3/10s&s=1o&t=-1', 'unknown part'],
    ['a=3/10s&s=1o&__proto__=1', 'unknown part'],
    ['a=3/10s&a=4/10s&s=1o', 'unknown part'],
    ['a=<img src=x onerror=alert(1)>&s=1o', 'unknown part'],
    ['a=3/10y&s=1o&t=', 'a duration is a whole number'],
    ['a=3/10s&s=zzzzzz&t=', 'span of time'],
    ['s=1o&t=', 'no limits'],
    ['', 'unknown part'],
  ])('are refused as a whole: %.40s', (link, reason) => {
    expect(() => decode(link)).toThrow(reason);
  });

  it('never throw anything but an error with a reason, whatever they have', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'a=3/10s&t.cr,z') })), (link) => {
        try {
          decode(link);
        } catch (error) {
          expect((error as Error).message).not.toBe('');
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
