import fc from 'fast-check';
import { createLimiter } from 'headgate';
import { createMemoryStore } from 'headgate/memory';
import { describe, expect, it } from 'vitest';
import { activeAt, answerAt, MAX_REQUESTS, maxAt, play, windowRows } from '../playground/history.ts';
import {
  isFault,
  type LimitTexts,
  type PlaygroundLimits,
  type Policy,
  readLimits,
  SUBJECT,
} from '../playground/limits.ts';
import { MARK, placeMarks, requestAt } from '../playground/marks.ts';
import { formatMs } from '../playground/moments.ts';
import { PRESETS, type State } from '../playground/presets.ts';
import { decode, decodeHash, encode, MAX_LINK } from '../playground/share.ts';
import { explain, headingOf, meaningOf, verdict } from '../playground/words.ts';
import { histories } from './support/histories.ts';

const limitsOf = (texts: LimitTexts): PlaygroundLimits => {
  const limits = readLimits(texts);
  if (isFault(limits)) throw new Error(limits.message);
  return limits;
};

const limitsAt = (adjustment: State['adjustment']): Policy['adjustment'] =>
  adjustment && { atMs: adjustment.atMs, limits: limitsOf(adjustment.limits) };

describe('the playground, without a page', () => {
  it('shows windows that are those of the limiter at any moment', () => {
    fc.assert(
      fc.property(histories, fc.nat({ max: 120_000 }), ({ current, adjustment, moments }, atMs) => {
        const limits = limitsOf(current);
        const policy = { limits, adjustment: limitsAt(adjustment) };
        const until = moments.filter((moment) => moment <= atMs);
        const rows = windowRows(play(policy, moments), policy).flatMap((row) => {
          const max = maxAt(row, atMs);
          return max === undefined ? [] : [[row.limit, row.durationMs, Math.min(max, activeAt(row, atMs)?.used ?? 0)]];
        });

        let now = 0;
        const store = createMemoryStore({ clock: { now: () => now } });
        const limiter = createLimiter({ store, limits, validate: false });
        let adjusted: Policy['adjustment'];
        const goTo = (moment: number): void => {
          now = moment;
          if (adjusted !== undefined || policy.adjustment === undefined || policy.adjustment.atMs > now) return;
          adjusted = policy.adjustment;
          limiter.adjust({}, adjusted.limits.allMethods);
          limiter.adjust({ route: SUBJECT.route }, adjusted.limits.routes[SUBJECT.route] ?? []);
        };
        for (const moment of until) {
          goTo(moment);
          limiter.consumeSync(SUBJECT);
        }
        goTo(atMs);
        const plan = limiter.windowSet(SUBJECT);
        const peeked = store.peek(SUBJECT.account, SUBJECT.route, plan);
        expect(rows).toEqual(
          plan.windows.map(({ limit, durationMs, max }, index) => [
            limit,
            durationMs,
            max - (peeked[index]?.remaining ?? 0),
          ]),
        );
        expect(answerAt(policy, moments, atMs).decision.toJSON()).toEqual(limiter.consumeSync(SUBJECT).toJSON());
      }),
      { numRuns: 300 },
    );
  });

  it('explains each decision: who rejected, until when, and that nothing is charged', () => {
    const limits = limitsOf({ route: '2/10s', allMethods: '3/1m' });
    const [first, , third, fourth, fifth] = play({ limits }, [1_000, 2_000, 3_500, 11_000, 12_000]);
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

  it('says what limits mean in words', () => {
    const meanings = (allMethods: string, route = '') => {
      const limits = limitsOf({ allMethods, route });
      return [meaningOf(limits, 'allMethods'), meaningOf(limits, 'route')];
    };
    expect(meanings('3/10s')).toEqual([
      '3 requests in 10 s. The window opens with an accepted request, ends exactly 10 s later, and opens again with the next one.',
      'No limit of its own.',
    ]);
    expect(meanings('60/1m 5000/1d', '0/1m')).toEqual([
      '60 requests in 1 min and 5000 requests in 1 d. A request must fit each of these windows. A window opens with an accepted request, and ends exactly its time later.',
      'Every request is rejected.',
    ]);
    expect(meanings('', '1/1s, 0/1h')).toEqual([
      'No limit for every route.',
      '1 request in 1 s and no request in 1 h. A request must fit each of these windows. A window opens with an accepted request, and ends exactly its time later.',
    ]);
  });

  it('names a window by what it becomes', () => {
    const headings = (before: string, after: string) => {
      const policy = { limits: limitsOf({ allMethods: before, route: '' }) };
      const adjustment = { atMs: 20_000, limits: limitsOf({ allMethods: after, route: '' }) };
      return windowRows([], { ...policy, adjustment }).map(headingOf);
    };
    expect(headings('3/10s, 9/1m', '6/10s, 9/1m')).toEqual(['3/10s, 6/10s from 20 s on', '9/1m']);
    expect(headings('3/10s', '6/30s')).toEqual(['3/10s until 20 s', '6/30s from 20 s on']);
  });

  it('places requests so that no mark covers another one, and each can be found', () => {
    const places = fc.array(fc.nat({ max: 290 }), { maxLength: MAX_REQUESTS }).map((all) => all.sort((a, b) => a - b));
    fc.assert(
      fc.property(places, (all) => {
        const placed = placeMarks(all, 300);
        const { marks, piles, rows } = placed;
        expect(
          [...marks.map(({ index }) => index), ...piles.flatMap(({ indexes }) => indexes)].sort((a, b) => a - b),
        ).toEqual(all.map((_, index) => index));
        for (const [index, mark] of marks.entries()) {
          const near = marks.slice(index + 1).find(({ x, row }) => row === mark.row && x - mark.x < MARK);
          expect(near).toBe(undefined);
          expect(requestAt(placed, mark.x, mark.row * MARK, MARK / 2)).toBe(mark.index);
        }
        for (const [index, { x }] of piles.entries()) {
          expect(x - (piles[index - 1]?.x ?? -100)).toBeGreaterThanOrEqual(30);
          expect(requestAt(placed, x, rows * MARK, MARK / 2)).toBe(piles[index]?.indexes[0]);
        }
      }),
    );
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
    const rejected = PRESETS.map(({ current, adjustment, moments }) =>
      play({ limits: limitsOf(current), adjustment: limitsAt(adjustment) }, moments)
        .filter(({ decision }) => !decision.accepted)
        .map(verdict),
    );
    expect(rejected.map((all) => [all.length, [...new Set(all)].sort()])).toEqual([
      [2, ['rejected by All methods 3/10s', 'rejected by All methods 5/30s']],
      [2, ['rejected by Route 10/1m']],
      [expect.any(Number), ['rejected by All methods 12/30s', 'rejected by All methods 2/1s']],
      [2, ['rejected by All methods 5/1d']],
      [1, ['rejected by All methods 6/30s']],
      [3, ['rejected by All methods 3/40s', 'rejected by All methods 6/40s']],
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
        expect(decodeHash(encodeURIComponent(link as string))).toEqual(state);
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
    ['a=3/10s&s=1o&t=NaN', 'not readable'],
    ['a=3/10s&s=NaN&t=', 'span of time'],
    ['a=3/10s&s=1o&t=1e9.Infinity', 'not readable'],
    ['a=3/10s&s=1o&t=5&x=5', 'adjustment is not whole'],
    ['a=3/10s&s=1o&t=5&xa=5/10s', 'adjustment is not whole'],
    ['a=3/10s&s=1o&t=5&x=NaN&xa=5/10s', 'not readable'],
    [`a=${'9'.repeat(400)}/1s&s=1o&t=`, 'limits are too long'],
    ['a=3%2F10s%3Cscript%3Ealert(1)%3C/script%3E&s=1o', 'unknown part'],
    ['%', 'broken "%" code'],
    ['%2F'.repeat(1_000_000), 'longer than 2048'],
    ['', 'unknown part'],
  ])('are refused as a whole: %.40s', (link, reason) => {
    expect(() => decodeHash(link)).toThrow(reason);
  });

  it('never throw anything but an error with a reason, whatever they have', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'a=3/10s&t.cr,z') })), (link) => {
        try {
          decodeHash(link);
        } catch (error) {
          expect((error as Error).message).not.toBe('');
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
