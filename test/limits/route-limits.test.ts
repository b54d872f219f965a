import { describe, expect, it } from 'vitest';
import { createLimiter, isHeadgateError, type LimiterOptions, type Subject } from '../../src/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const EMAILS = 'POST /api/v1/emails';
const OWN = ['5/1m'];

function limiterOf(limits: LimiterOptions['limits']) {
  const clock = createFakeClock(0);
  const limiter = createLimiter({ store: createMemoryStore({ clock }), limits });
  const windows = (subject: Partial<Subject> = {}) =>
    limiter
      .windowSet({ account: 'a', route: EMAILS, limits: OWN, ...subject })
      .windows.map(({ limit, max }) => `${limit} ${max}`);
  return { clock, limiter, windows };
}

describe('limits that are declared with a route', () => {
  it('S2: are checked first, then All methods', async () => {
    const { limiter, windows } = limiterOf({ allMethods: ['60/1m'] });
    expect(windows()).toEqual(['route 5', 'all-methods 60']);
    expect(windows({ limits: ['100/1d', '10/1s'] })).toEqual(['route 10', 'route 100', 'all-methods 60']);
    const subject = { account: 'a', route: EMAILS, limits: OWN };
    for (let i = 0; i < 5; i++) expect((await limiter.consume(subject)).accepted).toBe(true);
    expect(await limiter.consume(subject)).toMatchObject({ accepted: false, shown: { limit: 'route', max: 5 } });
    expect((await limiter.peek(subject)).map(({ remaining }) => remaining)).toEqual([0, 55]);
  });

  it('S1: belong to the route: another route has its own counts, and has no such limit if it declares none', async () => {
    const { limiter } = limiterOf({ allMethods: ['60/1m'] });
    for (let i = 0; i < 5; i++) limiter.consumeSync({ account: 'a', route: EMAILS, limits: OWN });
    expect(limiter.consumeSync({ account: 'a', route: 'GET /', limits: OWN }).accepted).toBe(true);
    expect(limiter.windowSet({ account: 'a', route: 'GET /' }).windows).toHaveLength(1);
    expect(limiter.consumeSync({ account: 'b', route: EMAILS, limits: OWN }).accepted).toBe(true);
  });

  it.each<[string, LimiterOptions['limits'], Partial<Subject>]>([
    ['default', { allMethods: ['60/1m'], routes: { [EMAILS]: ['9/1m'] } }, {}],
    ['a provider', { providers: { p: { routes: { [EMAILS]: ['9/1m'] } } } }, { provider: 'p' }],
    ['an account', { accounts: { a: { routes: { [EMAILS]: ['9/1m'] } } } }, {}],
    ['a function', () => ({ routes: { [EMAILS]: ['9/1m'] } }), {}],
  ])('a limit for the same route by %s of the limiter replaces them', (_layer, limits, subject) => {
    const { windows } = limiterOf(limits);
    expect(windows(subject)[0]).toBe('route 9');
    expect(windows({ ...subject, route: 'GET /other' })[0]).toBe('route 5');
  });

  it('[] for the same route in the limiter removes them', () => {
    expect(limiterOf({ allMethods: ['60/1m'], routes: { [EMAILS]: [] } }).windows()).toEqual(['all-methods 60']);
  });

  it('S10: adjust() replaces them at once, for one account or for all, and "recommended" brings them back', () => {
    const { limiter, windows } = limiterOf({ allMethods: ['60/1m'] });
    for (const target of [{}, { account: 'a' }, { provider: 'p' }]) {
      limiter.adjust({ ...target, route: EMAILS }, ['2/1m']);
      expect(windows({ provider: 'p' })).toEqual(['route 2', 'all-methods 60']);
      expect(windows({ provider: 'p', route: 'GET /other' })).toEqual(['route 5', 'all-methods 60']);
      limiter.adjust({ ...target, route: EMAILS }, 'recommended');
      expect(windows({ provider: 'p' })).toEqual(['route 5', 'all-methods 60']);
    }
    limiter.adjust({}, ['30/1m']);
    expect(windows()).toEqual(['route 5', 'all-methods 30']);
  });

  it('are checked once per array, so that a decision of the same array has the same plan', () => {
    const { limiter } = limiterOf(({ account }) => (account === 'a' ? FREE : PAID));
    const windowSetOf = (account: string, limits: readonly string[], route = EMAILS) =>
      limiter.windowSet({ account, route, limits });
    expect(windowSetOf('a', OWN)).toBe(windowSetOf('a', OWN, 'GET /'));
    expect(windowSetOf('a', OWN)).not.toBe(windowSetOf('b', OWN));
    expect(windowSetOf('a', ['5/1m'])).toEqual(windowSetOf('a', OWN));
  });

  it.each([
    [['5'], /^limits\[0\]: a window is max\/duration/],
    ['5/1m', /^limits: a limit is an array of windows such as \["60\/1m", "5000\/1d"\], got "5\/1m"/],
    [['1/1m', '2/60s'], /^limits: two windows of one limit need distinct durations/],
    [[], /^limits: must have a window; leave it out if the route has no limit of its own, got an array/],
    [null, /^limits: a limit is an array of windows/],
  ])('%j is an error, and charges nothing', async (limits, message) => {
    const { limiter } = limiterOf({ allMethods: ['60/1m'] });
    const subject = { account: 'a', route: EMAILS, limits: limits as never };
    await expect(limiter.consume(subject)).rejects.toThrow(message);
    await expect(limiter.peek(subject)).rejects.toSatisfy((error) => isHeadgateError(error, 'invalid_limit'));
    expect((await limiter.peek({ account: 'a', route: EMAILS }))[0]?.remaining).toBe(60);
  });
});

const FREE = { allMethods: ['6/1m'] };
const PAID = { allMethods: ['60/1m'] };
