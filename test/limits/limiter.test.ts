import { describe, expect, it } from 'vitest';
import type { LimitStore } from '../../src/core/ports.ts';
import { createLimiter, isHeadgateError, type Limiter, type LimiterOptions } from '../../src/index.ts';
import { recommendedLimits } from '../../src/limits/recommended.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createWindowSet } from '../../src/stores.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const EMAILS = 'POST /api/v1/emails';
const UNLIMITED = { unlimited: true };

function limiterOf(limits: LimiterOptions['limits']) {
  const clock = createFakeClock(1_000_000);
  return { clock, limiter: createLimiter({ store: createMemoryStore({ clock }), limits }) };
}

describe('the limiter', () => {
  it('returns a decision with the shown window and the trace, as documented', async () => {
    const { limiter } = limiterOf({ allMethods: ['60/1m', '5000/1d'], routes: { [EMAILS]: ['10/1m', '200/1d'] } });
    const decision = await limiter.consume({ account: 'acc_1', route: EMAILS });
    expect(decision.accepted).toBe(true);
    expect(decision.shown).toEqual({
      limit: 'all-methods',
      max: 5000,
      remaining: 4999,
      resetMs: 86_400_000,
      durationMs: 86_400_000,
      startedAt: 1_000_000,
    });
    expect(decision.trace.map(({ limit, max }) => [limit, max])).toEqual([
      ['route', 10],
      ['route', 200],
      ['all-methods', 60],
      ['all-methods', 5000],
    ]);
    expect(JSON.parse(JSON.stringify(decision))).toMatchObject({ accepted: true, shown: { max: 5000 }, cost: 1 });
  });

  it('S6: a route without its own limit shows the limit for all routes; without any limit, nothing is shown', async () => {
    const { limiter } = limiterOf({ routes: { [EMAILS]: ['1/1m'] } });
    expect((await limiter.consume({ account: 'a', route: EMAILS })).shown?.limit).toBe('route');
    const unlimited = await limiter.consume({ account: 'a', route: 'GET /other' });
    expect(unlimited).toMatchObject({ accepted: true, shown: undefined, trace: [] });
  });

  it('S13: refunds once', async () => {
    const { limiter } = limiterOf({ allMethods: ['1/1m'] });
    const decision = await limiter.consume({ account: 'a', route: 'r' });
    expect((await limiter.consume({ account: 'a', route: 'r' })).accepted).toBe(false);
    expect(await limiter.refund(decision)).toBe(true);
    expect(await limiter.refund(decision)).toBe(false);
    expect((await limiter.consume({ account: 'a', route: 'r' })).accepted).toBe(true);
  });

  it('S13: settles a decision once, with the cost that is known afterwards', async () => {
    const { limiter } = limiterOf({ allMethods: ['10/1m'], routes: { r: ['20/1h'] } });
    const subject = { account: 'a', route: 'r' };
    const remaining = async () => (await limiter.peek(subject)).map((window) => window.remaining);
    const [cheaper, dearer, refunded] = [
      await limiter.consume({ ...subject, cost: 4 }),
      await limiter.consume(subject),
      await limiter.consume(subject),
    ];
    expect([await limiter.settle(cheaper, 1), await remaining()]).toEqual([true, [17, 7]]);
    expect([await limiter.settle(cheaper, 0), await limiter.refund(cheaper), await remaining()]).toEqual([
      false,
      false,
      [17, 7],
    ]);
    expect([await limiter.settle(dearer, 12), await remaining()]).toEqual([true, [6, 0]]);
    // What was charged beyond the max has to be refunded before a request fits again.
    expect([await limiter.refund(refunded), await remaining()]).toEqual([true, [7, 0]]);
    expect((await limiter.consume(subject)).accepted).toBe(false);
  });

  it('S13: another limiter changes nothing, and leaves the decision to its own', async () => {
    const [own, other] = [1, 2].map(() =>
      createLimiter({ store: createMemoryStore(), limits: { allMethods: ['9/1m'] } }),
    ) as [Limiter, Limiter];
    const decision = await own.consume({ account: 'a', route: 'r', cost: 5 });
    expect([await other.settle(decision, 1), await own.settle(decision, 1)]).toEqual([false, true]);
    expect((await own.peek({ account: 'a', route: 'r' }))[0]?.remaining).toBe(8);
  });

  it('S13: a rejection is not settled', async () => {
    const { limiter } = limiterOf({ allMethods: ['1/1m'] });
    const [, rejected] = [
      await limiter.consume({ account: 'a', route: 'r' }),
      await limiter.consume({ account: 'a', route: 'r' }),
    ];
    expect([rejected.accepted, await limiter.settle(rejected, 5)]).toEqual([false, false]);
  });

  it('S14: peek changes nothing, reset deletes counters', async () => {
    const { limiter } = limiterOf({ allMethods: ['2/1m'] });
    await limiter.consume({ account: 'a', route: 'r' });
    for (let i = 0; i < 3; i++) expect((await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining).toBe(1);
    await limiter.reset({ account: 'a' });
    expect((await limiter.peek({ account: 'a', route: 'r' }))[0]).toMatchObject({ remaining: 2, startedAt: undefined });
  });
});

describe('layers', () => {
  const limits = {
    default: { allMethods: ['60/1m'], routes: { [EMAILS]: ['10/1m'] } },
    providers: { linkedin: { allMethods: ['30/1m'] }, free: { allMethods: [], routes: { [EMAILS]: [] } } },
    accounts: { acc_1: { routes: { [EMAILS]: ['2/10s'] } }, ['__proto__']: { allMethods: ['7/1m'] } },
  };
  const maxes = (subject: { account: string; route: string; provider?: string }) =>
    limiterOf(limits)
      .limiter.windowSet(subject)
      .windows.map((window) => window.max);

  it('uses the most specific layer, per limit', () => {
    expect(maxes({ account: 'x', route: EMAILS })).toEqual([10, 60]);
    expect(maxes({ account: 'x', route: 'GET /' })).toEqual([60]);
    expect(maxes({ account: 'x', route: EMAILS, provider: 'linkedin' })).toEqual([10, 30]);
    expect(maxes({ account: 'acc_1', route: EMAILS, provider: 'linkedin' })).toEqual([2, 30]);
    expect(maxes({ account: 'acc_1', route: 'GET /', provider: 'unheard-of' })).toEqual([60]);
  });

  it('[] removes a limit', () => {
    expect(maxes({ account: 'x', route: EMAILS, provider: 'free' })).toEqual([]);
  });

  it('treats names such as __proto__ as ordinary names', () => {
    expect(maxes({ account: 'constructor', route: '__proto__', provider: 'toString' })).toEqual([60]);
  });

  it.each([undefined, null, 5, new Map()])('rejects %j from a limits function, and names the function', (returned) => {
    const { limiter } = limiterOf(() => returned as never);
    expect(() => limiter.windowSet({ account: 'a', route: EMAILS })).toThrow(
      /^limits\(subject\): must .*allMethods(,| or) routes/,
    );
  });

  it('names a limits function that throws, and passes its error on as the cause', async () => {
    const cause = new RangeError('no such customer');
    const { limiter } = limiterOf(() => {
      throw cause;
    });
    const error = {
      code: 'invalid_option',
      message: 'limits(subject): must not throw, got RangeError: no such customer',
      cause,
    };
    await expect(limiter.consume({ account: 'a', route: EMAILS })).rejects.toMatchObject(error);
    await expect(limiter.peek({ account: 'a', route: EMAILS })).rejects.toMatchObject(error);
  });

  it('an asynchronous limits function that fails leaves no unhandled rejection', async () => {
    const unhandled: unknown[] = [];
    const listen = (error: unknown) => unhandled.push(error);
    process.on('unhandledRejection', listen);
    const { limiter } = limiterOf((() => Promise.reject(new Error('no database'))) as never);
    await expect(limiter.consume({ account: 'a', route: EMAILS })).rejects.toThrow(
      /^limits\(subject\): must not throw, got Error: no database/,
    );
    expect(() => limiter.windowSet({ account: 'a', route: EMAILS })).toThrow(/not a promise of them/);
    await new Promise((resolve) => setTimeout(resolve, 10));
    process.off('unhandledRejection', listen);
    expect(unhandled).toEqual([]);
  });

  it('may be a function of the subject; each returned object is parsed once', () => {
    const free = { allMethods: ['1/1m'] };
    const paid = { allMethods: ['9/1m'] };
    const { limiter } = limiterOf(({ account }) => (account.startsWith('free') ? free : paid));
    expect(limiter.windowSet({ account: 'free_1', route: 'r' }).windows[0]?.max).toBe(1);
    expect(limiter.windowSet({ account: 'paid_1', route: 'r' }).windows[0]?.max).toBe(9);
    expect(limiter.windowSet({ account: 'free_1', route: 'r' })).toBe(
      limiter.windowSet({ account: 'free_2', route: 'q' }),
    );
  });

  it('there are recommendations for the eight providers', () => {
    expect(Object.keys(recommendedLimits).sort()).toEqual(
      ['google', 'imap', 'instagram', 'linkedin', 'mock', 'outlook', 'telegram', 'whatsapp'].sort(),
    );
    const { limiter } = limiterOf({ providers: recommendedLimits });
    expect(limiter.windowSet({ account: 'a', route: EMAILS, provider: 'google' }).windows).toHaveLength(4);
  });
});

describe('S10: adjusting', () => {
  it('has an immediate effect, also for the active window, and can be undone', async () => {
    const { limiter } = limiterOf({ providers: recommendedLimits });
    const request = { account: 'a', route: 'GET /', provider: 'linkedin' };
    for (let i = 0; i < 5; i++) await limiter.consume(request);
    limiter.adjust({ provider: 'linkedin' }, ['4/1m']);
    const rejected = await limiter.consume(request);
    expect(rejected).toMatchObject({ accepted: false, shown: { max: 4, remaining: 0 } });
    limiter.adjust({ provider: 'linkedin' }, 'recommended');
    expect((await limiter.peek(request))[0]).toMatchObject({ max: 20, remaining: 15 });
  });

  it('does not change the scope', () => {
    const { limiter } = limiterOf({ allMethods: { windows: ['3/1m'], scope: 'account' } });
    limiter.adjust({ account: 'a' }, ['4/1m']);
    const accepted = Array.from(
      { length: 10 },
      (_, i) => limiter.consumeSync({ account: 'a', route: `r${i % 5}` }).accepted,
    );
    expect(accepted.filter(Boolean)).toHaveLength(4);
    expect(limiter.windowSet({ account: 'a', route: 'r' }).allMethodsScope).toBe('account');
  });

  it('adjusts one account, one route or the default, and undoes each', () => {
    const { limiter } = limiterOf({ allMethods: ['60/1m'] });
    const max = (account: string, route = 'r') =>
      limiter.windowSet({ account, route }).windows.map((window) => window.max);
    limiter.adjust({ account: 'a' }, ['5/1m']);
    limiter.adjust({ route: EMAILS }, ['3/1m']);
    expect([max('a'), max('b'), max('a', EMAILS), max('b', EMAILS)]).toEqual([[5], [60], [3, 5], [3, 60]]);
    limiter.adjust({ account: 'a' }, 'recommended');
    limiter.adjust({ route: EMAILS }, 'recommended');
    limiter.adjust({}, ['1/1s']);
    expect([max('a', EMAILS), max('b')]).toEqual([[1], [1]]);
    limiter.adjust({}, 'recommended');
    expect(max('b')).toEqual([60]);
  });

  it('rejects an invalid adjustment with its place, and changes nothing', () => {
    const { limiter } = limiterOf({ allMethods: ['60/1m'] });
    expect(() => limiter.adjust({ account: 'a', provider: 'p' }, ['1/1m'])).toThrow(
      /^target: must name only one of account/,
    );
    expect(() => limiter.adjust({ account: 'a' }, ['1/1m', '2/60s'])).toThrow(/accounts\["a"\]\.allMethods.*distinct/);
    expect(() => limiter.adjust({ acount: 'a' } as object, ['1/1m'])).toThrow(/target\.acount: unknown option/);
    expect(() => limiterOf(() => ({})).limiter.adjust({}, ['1/1m'])).toThrow(/limits is a function/);
    expect(limiter.windowSet({ account: 'a', route: 'r' }).windows[0]?.max).toBe(60);
  });
});

describe('invalid input', () => {
  it.each([undefined, null, 'acc_1', 7])('a subject that is %j: the error says what is expected', async (wrong) => {
    const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['1/1m'] } });
    const expected = /^subject: must be an object such as \{ account: 'acc_1', route: 'POST \/emails' \}, got /;
    expect(() => limiter.consumeSync(wrong as never)).toThrow(expected);
    await expect(limiter.consume(wrong as never)).rejects.toThrow(expected);
    await expect(limiter.peek(wrong as never)).rejects.toThrow(expected);
    await expect(limiter.refund(wrong as never)).rejects.toThrow(
      typeof wrong === 'string'
        ? /^receipts: must be given/
        : /^decision: must be what consume\(\) returned, or its receipt, got /,
    );
  });

  it.each([-1, 1.5, Number.NaN, 2 ** 53, '1', undefined, null])(
    'S13: settling with a cost of %j throws, and the decision can still be settled',
    async (wrong) => {
      const limiter = createLimiter({ store: createMemoryStore(), limits: { allMethods: ['9/1m'] } });
      const decision = await limiter.consume({ account: 'a', route: 'r' });
      const settling = limiter.settle(decision, wrong as never);
      await expect(settling).rejects.toThrow(/^cost must be an integer from 0 to 9007199254740991, got /);
      await expect(settling).rejects.toMatchObject({ code: 'invalid_cost' });
      await expect(limiter.settle({} as never, 1)).rejects.toThrow(
        /^decision: must be what consume\(\) returned, or its receipt, got /,
      );
      expect(await limiter.settle(decision, 2)).toBe(true);
    },
  );

  it('a store without a method: the error names it', () => {
    const store = { consume() {}, peek() {}, reset() {} };
    expect(() => createLimiter({ store: store as never, limits: { allMethods: ['1/1m'] } })).toThrow(
      /^store: must have settle\(\), as createMemoryStore\(\) does, got /,
    );
    expect(() => createLimiter({ store: undefined as never, limits: { allMethods: ['1/1m'] } })).toThrow(
      /^store: must be a store, or left out: .* in its own memory, got undefined$/,
    );
  });

  it.each([
    [{}, 'limits'],
    [{ allMethods: [] }, 'limits'],
    [{ allMethods: { windows: [], scope: 'account' } }, 'limits'],
    [{ routes: {} }, 'limits'],
    [{ routes: { [EMAILS]: [] } }, 'limits'],
    [{ default: {} }, 'limits'],
    [{ providers: {}, accounts: {} }, 'limits'],
    [{ default: { allMethods: [] }, providers: { p: {} }, accounts: { a: { routes: { r: [] } } } }, 'limits'],
    [() => ({}), 'limits\\(subject\\)'],
    [() => ({ allMethods: [], routes: { [EMAILS]: [] } }), 'limits\\(subject\\)'],
  ])('limits without any window are an error that says how to mean it: %j', async (limits, place) => {
    const consume = async () => limiterOf(limits as never).limiter.consume({ account: 'a', route: 'r' });
    await expect(consume()).rejects.toThrow(
      new RegExp(`^${place}: must have a window, such as .*; \\{ unlimited: true \\} says that .*, got an object$`),
    );
  });

  it.each([
    [{ unlimited: true }],
    [{ unlimited: true, allMethods: [], routes: { [EMAILS]: [] } }],
    [{ default: { unlimited: true } }],
    [{ default: { unlimited: true }, providers: { p: { allMethods: ['1/1m'] } } }],
    [() => UNLIMITED],
  ])('unlimited: true says so, and a limit can be adjusted later: %j', (limits) => {
    const { limiter } = limiterOf(limits as never);
    for (let i = 0; i < 9; i++) expect(limiter.consumeSync({ account: 'a', route: 'r' }).accepted).toBe(true);
    limiter.adjust({ account: 'a' }, ['1/1m']);
    const accepted = Array.from({ length: 3 }, () => limiter.consumeSync({ account: 'a', route: 'r' }).accepted);
    expect(accepted).toEqual([true, false, false]);
  });

  it('limits of one layer suffice', () => {
    for (const limits of [{ accounts: { a: { allMethods: ['1/1m'] } } }, { default: {}, providers: recommendedLimits }])
      expect(limiterOf(limits).limiter.windowSet({ account: 'x', route: 'r' }).windows).toEqual([]);
  });

  it.each([
    [{ unlimited: true, allMethods: ['1/1m'] }, /^limits\.unlimited: must not be given beside windows/],
    [{ unlimited: true, routes: { r: ['1/1m'] } }, /^limits\.unlimited: must not be given beside windows/],
    [{ unlimited: false, allMethods: ['1/1m'] }, /^limits\.unlimited: must be true, or absent, got false/],
    [{ unlimited: 'yes' }, /^limits\.unlimited: must be true, or absent/],
    [{ unlimited: true, accounts: {} }, /^limits\.unlimited: unknown option/],
    [
      { default: { allMethods: ['1/1m'] }, accounts: { vip: { unlimited: true } } },
      /^limits\.accounts\["vip"\]\.unlimited: only the limits of every account can be unlimited; \{ allMethods: \[\] \} removes that limit here/,
    ],
    [
      { providers: { p: { unlimited: true } } },
      /^limits\.providers\["p"\]\.unlimited: only the limits of every account/,
    ],
  ])('unlimited: true in the wrong place or beside windows is an error: %j', (limits, message) => {
    expect(() => limiterOf(limits as never)).toThrow(message);
  });

  it.each([
    [{ allMethods: ['60'] }, /limits\.allMethods\[0\]: a window is max\/duration.*"60"/],
    [{ allMethods: ['60/1w'] }, /limits\.allMethods\[0\]: a duration/],
    [{ allMethods: [{ max: 1.5, durationMs: 1 }] }, /limits\.allMethods\[0\]: max must be.*1\.5/],
    [{ routes: { x: ['1/1m', '2/1m'] } }, /limits\.routes\["x"\]: two windows.*"1m"/],
    [{ allMethods: null }, /limits\.allMethods: must be an array of windows/],
    [{ routes: [] }, /limits\.routes: must be a plain object/],
    [{ rutes: {} }, /limits\.rutes: unknown option \(/],
    [{ windows: ['1/1m'], inFlight: 1 }, /^limits\.windows: unknown option: put it into allMethods \(expected /],
    [
      { default: { rutes: {} } },
      /^limits\.default\.rutes: unknown option \(expected allMethods, routes or unlimited\)/,
    ],
    [{ 'POST /emails': ['1/1m'] }, /^limits\.POST \/emails: unknown option: put it under routes \(expected /],
    [{ allMethods: ['1/1m'], plans: {} }, /^limits\.allMethods: unknown option: move it into default \(expected /],
    [{ default: {}, provider: {} }, /limits\.provider: unknown option/],
    [{ accounts: { a: { allMethods: 5 } } }, /limits\.accounts\["a"\]\.allMethods: must be an array/],
    [{ accounts: 7 }, /limits\.accounts: must be a plain object/],
    [{ allMethods: { windows: ['1/1m'], scope: 'world' } }, /limits\.allMethods\.scope: must be/],
    [{ allMethods: { windows: ['1/1m'], scop: 'route' } }, /limits\.allMethods\.scop: unknown option/],
    [null, /limits: must be an object or a function/],
    [new Map([['allMethods', ['1/1m']]]), /limits: must be an object or a function/],
    [
      Promise.resolve({ allMethods: ['0/1m'] }),
      /limits: must be an object or a function.*, got a promise \(is await missing\?\)$/,
    ],
    [
      { default: {}, plans: Promise.resolve({}) },
      /limits\.plans: must be a plain object, got a promise \(is await missing\?\)$/,
    ],
    [
      { routes: { x: Promise.resolve([]) } },
      /limits\.routes\["x"\]: a limit is an array.*, got a promise \(is await missing\?\)$/,
    ],
    [{ accounts: new Map() }, /limits\.accounts: must be a plain object/],
    [{ default: 7 }, /limits\.default: must be a plain object/],
  ])('S3: the error for %j contains the value and its place', (limits, message) => {
    expect(() => limiterOf(limits as never)).toThrow(message);
  });

  it('names an invalid option of createLimiter', () => {
    const store = createMemoryStore();
    expect(() => createLimiter({ store: {} as LimitStore, limits: {} })).toThrow(/store: must have consume/);
    expect(() => createLimiter({ store: Promise.resolve(store), limits: {} } as never)).toThrow(
      /a promise \(is await missing\?\)$/,
    );
    expect(() => createLimiter({ store, limits: {}, limit: {} } as never)).toThrow(/options\.limit: unknown option/);
    expect(() => createMemoryStore({ maxkeys: 5 } as never)).toThrow(/options\.maxkeys: unknown option/);
    expect(() => limiterOf((async () => ({})) as never).limiter.windowSet({ account: 'a', route: 'r' })).toThrow(
      /limits\(subject\)/,
    );
    expect(() => limiterOf(() => 5 as never).limiter.windowSet({ account: 'a', route: 'r' })).toThrow(
      /limits\(subject\)/,
    );
  });

  it.each([Number.NaN, 0, -1, 1.5, 2 ** 53, Number.POSITIVE_INFINITY, '1', null])(
    'S11: rejects a cost of %s and charges nothing',
    async (cost) => {
      const { limiter } = limiterOf({ allMethods: ['3/1m'] });
      const consumed = limiter.consume({ account: 'a', route: 'r', cost: cost as number });
      await expect(consumed).rejects.toSatisfy((error) => isHeadgateError(error, 'invalid_cost'));
      expect((await limiter.peek({ account: 'a', route: 'r' }))[0]?.remaining).toBe(3);
    },
  );

  it.each([undefined, 7, null, {}])('rejects an account or route of %s', async (invalid) => {
    const { limiter } = limiterOf({ allMethods: ['3/1m'] });
    await expect(limiter.consume({ account: invalid as string, route: 'r' })).rejects.toThrow(
      /account must be a string/,
    );
    await expect(limiter.consume({ account: 'a', route: invalid as string })).rejects.toThrow(/route must be a string/);
    expect(() => limiter.consumeSync({ account: invalid as string, route: 'r' })).toThrow(/account must be a string/);
    await expect(limiter.reset({ account: invalid as string })).rejects.toThrow(/account must be a string/);
    if (invalid === undefined) return;
    await expect(limiter.consume({ account: 'a', route: 'r', provider: invalid as string })).rejects.toThrow(
      /provider must be/,
    );
  });

  it('consumeSync on an asynchronous store throws, and names consume', async () => {
    const store = createMemoryStore();
    const later: LimitStore = {
      synchronous: false,
      consume: async (...args) => store.consume(...args),
      peek: async (...args) => store.peek(...args),
      settle: async (...args) => store.settle(...args),
      reset: async (target) => store.reset(target),
    };
    const limiter = createLimiter({ store: later, limits: { allMethods: ['1/1m'] } });
    expect(() => limiter.consumeSync({ account: 'a', route: 'r' })).toThrow(/call consume/);
    expect((await limiter.consume({ account: 'a', route: 'r' })).accepted).toBe(true);
  });

  it('close closes the store once, and later calls reject', async () => {
    let closed = 0;
    const store = Object.assign(createMemoryStore(), { close: () => void closed++ });
    const limiter = createLimiter({ store, limits: { allMethods: ['1/1m'] } });
    await limiter.close();
    await limiter.close();
    expect(closed).toBe(1);
    await expect(limiter.consume({ account: 'a', route: 'r' })).rejects.toThrow(/was closed/);
    await expect(limiter.reset({})).rejects.toThrow(/was closed/);
  });
});

describe('S1: scope', () => {
  it('each route has its own counter by default; with scope account, all routes share one', async () => {
    const consume = async (limits: LimiterOptions['limits']) => {
      const { limiter } = limiterOf(limits);
      const accepted = [];
      for (const route of ['a', 'b', 'c']) accepted.push((await limiter.consume({ account: 'x', route })).accepted);
      return accepted;
    };
    expect(await consume({ allMethods: ['2/1m'] })).toEqual([true, true, true]);
    expect(await consume({ allMethods: { windows: ['2/1m'], scope: 'account' } })).toEqual([true, true, false]);
  });
});

it('exports createWindowSet for authors of stores', () => {
  expect(createWindowSet([], []).windows).toEqual([]);
});
