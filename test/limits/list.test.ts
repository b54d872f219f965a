/** S34: limits that are a list of windows count all requests of an account together. */
import { describe, expect, it } from 'vitest';
import { rateLimitFields } from '../../src/http/index.ts';
import { createLimiter, isHeadgateError, type LimiterOptions } from '../../src/index.ts';
import type { Limits } from '../../src/limits/window-set-source.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createSharedLimits } from '../../src/shared-limits/index.ts';
import { createMemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';
import { createJobWorker } from '../../src/waiting/index.ts';

const maxes = (windows: readonly { readonly max: number }[]) => windows.map(({ max }) => max);

function limiterOf(limits: LimiterOptions['limits']) {
  return createLimiter({ store: createMemoryStore({ clock: createFakeClock(1_000_000) }), limits });
}

describe('a list of windows', () => {
  it('S34: counts all routes of an account together, in every window, and accounts apart', () => {
    const limiter = limiterOf(['40/1m', '5000/1d']);
    const accepted = Array.from(
      { length: 80 },
      (_, i) => limiter.consumeSync({ account: 'a', route: `GET /${i % 4}` }).accepted,
    );
    expect(accepted.filter(Boolean)).toHaveLength(40);
    const decision = limiter.consumeSync({ account: 'b' });
    expect(decision).toMatchObject({ accepted: true, route: '*', shown: { limit: 'all-methods', remaining: 4999 } });
  });

  it('S34: its windows can have names', () => {
    const limiter = limiterOf([{ name: 'per-minute', window: '40/1m' }, '5000/1d']);
    expect(rateLimitFields(limiter.consumeSync({ account: 'a' }), 'ietf').ratelimit).toBe(
      '"per-minute";r=39;t=60, "all-methods-1d";r=4999;t=86400',
    );
  });

  it('S34: needs no route in any method, and requests with and without one share the count', async () => {
    const limiter = limiterOf(['3/1m']);
    const first = await limiter.consume({ account: 'a' });
    expect(limiter.consumeSync({ account: 'a', route: 'GET /' }).shown?.remaining).toBe(1);
    expect((await limiter.peek({ account: 'a' }))[0]?.remaining).toBe(1);
    expect(await limiter.settle(first, 2)).toBe(true);
    expect(limiter.consumeSync({ account: 'a' }).accepted).toBe(false);
    await limiter.reset({ account: 'a' });
    expect(maxes(limiter.windowSet({ account: 'a' }).windows)).toEqual([3]);
    expect((await limiter.peek({ account: 'a', route: 'GET /' }))[0]?.remaining).toBe(3);
    await limiter.block({ account: 'a' }, { forMs: 1_000 });
    expect((await limiter.consume({ account: 'a' })).blocked).toEqual({ forMs: 1_000, reason: undefined });
  });

  it('S34: a memory store is the default, and each limiter has its own', async () => {
    const [one, other] = [createLimiter({ limits: ['1/1m'] }), createLimiter({ limits: ['1/1m'] })];
    expect([one, one, other].map((each) => each.consumeSync({ account: 'a' }).accepted)).toEqual([true, false, true]);
    await one.close();
  });

  it('S34: is the same as All methods with the scope of the account', () => {
    const list = limiterOf(['5/1m', '9/1d']).windowSet({ account: 'a', route: 'r' });
    const set = limiterOf({ allMethods: { windows: ['5/1m', '9/1d'], scope: 'account' } });
    expect(list).toEqual(set.windowSet({ account: 'a', route: 'r' }));
  });

  it('S34: stands for a set of limits in every layer, and replaces All methods of the layers below', () => {
    const limiter = limiterOf({
      default: ['10/1m'],
      plans: { free: {}, pro: ['100/1m'] },
      providers: { linkedin: ['20/1m', '800/1d'] },
      accounts: { vip: ['500/1m'], free: { allMethods: [] } },
    });
    const of = (account: string, plan?: string, provider?: string) =>
      maxes(limiter.windowSet({ account, plan, provider }).windows);
    expect([
      of('a'),
      of('a', 'free'),
      of('a', 'pro'),
      of('a', 'pro', 'linkedin'),
      of('vip', 'pro'),
      of('free'),
    ]).toEqual([[10], [10], [100], [20, 800], [500], []]);
    const accepted = Array.from(
      { length: 120 },
      (_, i) => limiter.consumeSync({ account: 'a', plan: 'pro', route: `r${i % 3}` }).accepted,
    );
    expect(accepted.filter(Boolean)).toHaveLength(100);
  });

  it('S1: windows without a scope are counted as in the layer that they replace', () => {
    const list = ['20/1m'];
    const perRoute = { windows: list, scope: 'route' as const };
    const scopeOf = (limits: Limits, of: object) =>
      limiterOf(limits).windowSet({ account: 'a', route: 'r', ...of }).allMethodsScope;
    const plans = { pro: { allMethods: list }, own: { allMethods: perRoute } };
    const providers = { p: { allMethods: list }, q: { allMethods: { windows: list } } };
    const limits: Limits = { default: ['10/1m'], plans, providers };
    const subjects = [{ plan: 'pro' }, { plan: 'own' }, { provider: 'p' }, { provider: 'q' }];
    expect(subjects.map((of) => scopeOf(limits, of))).toEqual(['account', 'route', 'account', 'account']);
    expect(scopeOf(limits, { plan: 'own', provider: 'p' })).toBe('route');
    for (const base of [{ allMethods: list }, { routes: { s: list } }])
      expect(scopeOf({ ...limits, default: base }, { provider: 'p' })).toBe('route');
    // So such limits need no route, either.
    expect(limiterOf({ default: ['1/1m'], providers }).consumeSync({ account: 'a' }).accepted).toBe(true);
  });

  it('S10, S34: an adjustment of an account counts all routes together as well', () => {
    const limiter = limiterOf(['3/1m']);
    limiter.adjust({ account: 'a' }, ['5/1m']);
    const accepted = Array.from(
      { length: 9 },
      (_, i) => limiter.consumeSync({ account: 'a', route: `r${i}` }).accepted,
    );
    expect(accepted.filter(Boolean)).toHaveLength(5);
    limiter.adjust({ account: 'a' }, 'recommended');
    limiter.adjust({}, ['7/1m']);
    expect(maxes(limiter.windowSet({ account: 'a' }).windows)).toEqual([7]);
  });

  it('S34: beside the limit of a route, both apply; the route must be named', () => {
    const limiter = limiterOf(['10/1m']);
    const limits = ['2/1m'];
    const accepted = [1, 2, 3].map(() => limiter.consumeSync({ account: 'a', route: 'POST /', limits }).accepted);
    expect(accepted).toEqual([true, true, false]);
    expect(limiter.consumeSync({ account: 'a' }).shown?.remaining).toBe(7);
    expect(() => limiter.consumeSync({ account: 'a', limits })).toThrow(
      'route must be a string, got undefined: only limits that are a list of windows do without a route',
    );
  });

  it('S34: a function may return a list, which needs no route', async () => {
    const list = ['2/1m'];
    const perRoute = { allMethods: ['2/1m'] };
    const limiter = limiterOf(({ account }) => (account === 'list' ? list : perRoute));
    expect(['r', 's', 't'].map((route) => limiter.consumeSync({ account: 'list', route }).accepted)).toEqual([
      true,
      true,
      false,
    ]);
    await expect(limiter.consume({ account: 'set' })).rejects.toThrow(/^route must be a string/);
    limiter.adjust({ account: 'list', route: 'r' }, ['1/1m']);
    await expect(limiter.consume({ account: 'list' })).rejects.toThrow(/^route must be a string/);
  });

  it('S3: faults name their place', () => {
    const of = (limits: unknown) => () => limiterOf(limits as never);
    expect(of(['60/1m', '70/60s'])).toThrow(/^limits: two windows of one limit need distinct durations/);
    expect(of(['60 per minute'])).toThrow(/^limits\[0\]: a window is max\/duration/);
    expect(of([])).toThrow(/^limits: must have a window, such as \['60\/1m'\]/);
    expect(of({ default: ['1/1m'], plans: { pro: ['x'] } })).toThrow(/^limits\.plans\["pro"\]\[0\]: a window/);
    expect(of({ default: [], plans: { pro: ['1/1m'] } })).toThrow(/^limits\.default: must have a window, such as/);
    expect(of({ default: ['1/1m'], plans: { free: [] } })).toThrow(
      /^limits\.plans\["free"\]: must have a window; \{\} leaves .*, \{ allMethods: \[\] \} removes/,
    );
    expect(of('60/1m')).toThrow(/^limits: must be an object or a function of the subject, or a list of windows/);
    expect(of(() => [])).not.toThrow();
    expect(() => limiterOf(() => []).consumeSync({ account: 'a' })).toThrow(/^limits\(subject\): must have a window/);
  });
});

describe('limits that depend on the route', () => {
  it.each([
    [{ allMethods: ['1/1m'] }],
    [{ allMethods: { windows: ['1/1m'], scope: 'account' as const }, routes: { r: ['1/1m'] } }],
    [{ default: ['1/1m'], accounts: { vip: { routes: { r: ['5/1m'] } } } }],
    [{ default: ['1/1m'], providers: { p: { allMethods: { windows: ['5/1m'], scope: 'route' as const } } } }],
    [{ default: { routes: { r: ['9/1m'] } }, providers: { p: { allMethods: ['5/1m'] } } }],
    [{ unlimited: true as const }],
  ])('S34: refuse a request without a route, of any account: %j', async (limits) => {
    const limiter = limiterOf(limits);
    const fault = await limiter.consume({ account: 'a' }).catch((error) => error);
    expect(isHeadgateError(fault, 'invalid_subject')).toBe(true);
    await expect(limiter.peek({ account: 'a' })).rejects.toThrow(/^route must be a string, got undefined/);
  });

  it('S34: a list refuses the adjustment of a route, which could not apply to requests without one', () => {
    const limiter = limiterOf(['10/1m']);
    expect(() => limiter.adjust({ account: 'a', route: 'r' }, ['1/1m'])).toThrow(
      /^target\.route: must be absent: limits that are a list .* scope: 'account' .*, got "r"$/,
    );
    const mixed = limiterOf({ allMethods: { windows: ['10/1m'], scope: 'account' }, routes: { s: ['5/1m'] } });
    mixed.adjust({ route: 'r' }, ['1/1m']);
    expect(maxes(mixed.windowSet({ account: 'a', route: 'r' }).windows)).toEqual([1, 10]);
  });
});

it('S22, S34: shared limits over a list', async () => {
  const limits = createSharedLimits({ base: ['60/1m'], adjustments: createMemoryAdjustments() });
  await limits.ready();
  const limiter = createLimiter({ limits });
  await limits.put({ account: 'a' }, ['2/1m'], { by: 'jane', confirm: true });
  expect([1, 2, 3].map(() => limiter.consumeSync({ account: 'a' }).accepted)).toEqual([true, true, false]);
  expect(limits.explain({ account: 'a' })).toMatchObject([
    { limit: 'route', applies: undefined, hides: [] },
    { limit: 'all-methods', applies: { layer: 'account', adjustment: { by: 'jane' } }, hides: [{ layer: 'default' }] },
  ]);
  await expect(limits.put({ route: 'r' }, ['2/1m'], { by: 'jane' })).rejects.toThrow(/^target\.route: must be absent/);
  await limits.rebase({ allMethods: ['60/1m'] });
  expect(() => limiter.consumeSync({ account: 'a' })).toThrow(/^route must be a string/);
  await limits.close();
});

it('S27, S34: a candidate and its limiter decide about requests without a route', async () => {
  const limiter = withShadow(limiterOf(['3/1m']), { limits: ['1/1m'], store: createMemoryStore() });
  for (let i = 0; i < 3; i++) limiter.consumeSync({ account: 'a' });
  await limiter.shadow.idle();
  expect(limiter.shadow.figures()).toMatchObject({
    total: { none: 1, onlyCandidate: 2, failed: 0 },
    newlyRejected: [{ account: 'a', rejected: 2, route: '*', limit: 'all-methods' }],
  });
});

it('S34: jobs wait without a route', async () => {
  const limiter = limiterOf(['1/1m']);
  const worker = createJobWorker(limiter);
  expect((await worker.acquire({ account: 'a' })).route).toBe('*');
  await expect(worker.acquire({ account: 'a' }, { maxWaitMs: 0 })).rejects.toThrow(/must wait at least/);
  await worker.close();
});

it('S34: many names of routes are no sign of a mistake, because they are not counted apart', () => {
  const warnings: string[] = [];
  const limiter = createLimiter({ limits: ['9999/1m'], logger: (message) => warnings.push(message) });
  for (let i = 0; i < 1_100; i++) limiter.consumeSync({ account: 'a', route: `GET /users/${i}` });
  expect(warnings).toEqual([]);
});
