/** Limits that are a function of the subject, perhaps asynchronous. */
import { describe, expect, it } from 'vitest';
import type { GateEntry } from '../../src/gate/index.ts';
import { createGate, createLimiter, isHeadgateError, type Limits } from '../../src/index.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createSharedLimits } from '../../src/shared-limits/index.ts';
import { createMemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createJobWorker } from '../../src/waiting/index.ts';
import { createDistantStore } from '../support/distant-store.ts';
import { createFakeTimers } from '../support/fake-timers.ts';

const SUBJECT = { account: 'a', route: 'GET /' };
const limiterOf = (limits: Limits) => createLimiter({ limits, validate: false });
const maxOf = (windows: readonly { readonly max: number }[]) => windows.map(({ max }) => max);

describe('a function that returns new objects', () => {
  it('gives equal limits the same window set, whatever object they are', () => {
    const limiter = limiterOf(({ account }) => ({ allMethods: [account === 'a' ? '1/1m' : '2/1m'] }));
    const one = limiter.windowSet(SUBJECT);
    expect(limiter.windowSet(SUBJECT)).toBe(one);
    expect(limiter.windowSet({ ...SUBJECT, account: 'b' })).not.toBe(one);
    expect(limiterOf(() => ['1/1m']).windowSet(SUBJECT)).not.toBe(one);
  });

  it('obeys an object that was changed in place', () => {
    const rows: Record<string, { allMethods: string[] }> = { a: { allMethods: ['1/1m'] } };
    const limiter = limiterOf(({ account }) => rows[account] as { allMethods: string[] });
    expect(maxOf(limiter.windowSet(SUBJECT).windows)).toEqual([1]);
    (rows.a as { allMethods: string[] }).allMethods[0] = '5/1m';
    expect(maxOf(limiter.windowSet(SUBJECT).windows)).toEqual([5]);
  });

  it('keeps the last 1,000 texts compiled, and counts go on after that', () => {
    const limiter = limiterOf(({ account }) => [`${account.length}/1m`]);
    const first = limiter.windowSet({ account: 'x' });
    expect(limiter.consumeSync({ account: 'x' }).accepted).toBe(true);
    for (let i = 2; i <= 1_000; i++) limiter.windowSet({ account: 'x'.repeat(i) });
    expect(limiter.windowSet({ account: 'x' })).toBe(first);
    limiter.windowSet({ account: 'x'.repeat(1_001) });
    expect(limiter.windowSet({ account: 'x' })).not.toBe(first);
    expect(limiter.consumeSync({ account: 'x' }).accepted).toBe(false);
  });

  it.each<[string, unknown, RegExp]>([
    ['a bigint', [{ max: 60n, durationMs: 1 }], /^limits\(subject\)\[0\]: max must be a non-negative integer/],
    ['NaN', [{ max: Number.NaN, durationMs: 1 }], /^limits\(subject\)\[0\]: max must be/],
    ['a bad window', ['60 per minute'], /^limits\(subject\)\[0\]: a window is max\/duration/],
    [
      'a text',
      '60/1m',
      /^limits\(subject\): must be a plain object \(expected allMethods, routes, unlimited, groups or lanes\)/,
    ],
    ['an empty list', [], /^limits\(subject\): must have a window/],
  ])('names the fault of %s, each time', async (_, returned, message) => {
    const limiter = limiterOf((() => returned) as never);
    for (let i = 0; i < 2; i++) await expect(limiter.consume(SUBJECT)).rejects.toThrow(message);
  });
});

describe('a function beneath an adjustment', () => {
  it('HG_ADJUSTMENT_HIDES: is heard once when it returns other limits for the account', async () => {
    const rows: Record<string, string[]> = { a: ['1/1m'], b: ['1/1m'] };
    const warnings: unknown[] = [];
    const limiter = createLimiter({
      limits: async ({ account }) => ({ allMethods: rows[account] ?? [], routes: { r: ['3/1m'] } }),
      logger: (_message, warning) => warnings.push(String(warning)),
    });
    limiter.adjust({ account: 'a' }, ['5/1m']);
    limiter.adjust({ account: 'b', route: 'r' }, ['2/1m']);
    const askBoth = async () => {
      for (const account of ['a', 'b']) await limiter.consume({ account, route: 'r' });
    };
    await askBoth();
    rows.b = ['9/1m'];
    await askBoth();
    expect(warnings).toEqual([]);
    rows.a = ['9/1m'];
    await askBoth();
    rows.a = ['8/1m'];
    await askBoth();
    expect(warnings).toEqual([
      'MisuseWarning: The function `limits` changed a limit that adjust() hides, limits.accounts["a"].allMethods: ' +
        "reset the adjustment with 'recommended', if it is outdated.",
    ]);
  });
});

describe('an asynchronous function', () => {
  it('is waited for by consume and peek, for each request anew', async () => {
    let max = 1;
    const limiter = limiterOf(async () => [`${max}/1m`]);
    const accepts = async () => (await limiter.consume(SUBJECT)).accepted;
    expect([await accepts(), await accepts()]).toEqual([true, false]);
    max = 2;
    expect([await accepts(), await accepts()]).toEqual([true, false]);
    expect((await limiter.peek({ account: 'a' })).map(({ max: of, remaining }) => [of, remaining])).toEqual([[2, 0]]);
  });

  it('gets the subject; a caller may change its object while the function waits', async () => {
    const asked: unknown[] = [];
    const limiter = limiterOf(async (subject) => {
      asked.push({ ...subject });
      await Promise.resolve();
      return ['9/1m'];
    });
    const request = { account: 'a', plan: 'pro', cost: 3 };
    const deciding = limiter.consume(request);
    Object.assign(request, { account: 'b', cost: 1 });
    expect(await deciding).toMatchObject({ account: 'a', cost: 3, route: '*' });
    expect(asked).toEqual([{ account: 'a', plan: 'pro', cost: 3 }]);
  });

  it('lets adjustments of accounts, providers and plans replace what it returns', async () => {
    const limiter = limiterOf(async () => ['1/1m']);
    limiter.adjust({ account: 'a' }, ['3/1m']);
    expect(maxOf(await limiter.peek({ account: 'a' }))).toEqual([3]);
    expect(maxOf(await limiter.peek({ account: 'b' }))).toEqual([1]);
  });

  it.each([
    [
      'rejects',
      () => Promise.reject(new Error('no database')),
      /^limits\(subject\): must not throw, got Error: no database$/,
    ],
    [
      'returns no limits',
      async () => undefined,
      /^limits\(subject\): must return a list of windows, or a plain object/,
    ],
    ['returns a bad window', async () => ['x'], /^limits\(subject\)\[0\]: a window is max\/duration/],
  ])('that %s is an error, and charges nothing', async (_, limits, message) => {
    const limiter = limiterOf(limits as never);
    const fault = await limiter.consume(SUBJECT).catch((error) => error);
    expect(isHeadgateError(fault)).toBe(true);
    expect(fault.message).toMatch(message);
    await expect(limiter.peek(SUBJECT)).rejects.toThrow(message);
  });

  it('keeps the error of the database as the cause', async () => {
    const cause = new Error('no database');
    const limiter = limiterOf(() => Promise.reject(cause));
    await expect(limiter.consume(SUBJECT)).rejects.toMatchObject({ code: 'invalid_option', cause });
  });

  it('is refused by what cannot wait, which says what can, and charges nothing', async () => {
    const limiter = limiterOf(async () => ['1/1m']);
    const message =
      /^limits\(subject\): must return the limits here, not a promise of them: only consume\(\) and peek\(\)/;
    expect(limiter.synchronous).toBe(false);
    expect(() => limiter.consumeSync(SUBJECT)).toThrow(message);
    expect(() => limiter.windowSet(SUBJECT)).toThrow(message);
    const shared = createSharedLimits({ base: async () => ['1/1m'], adjustments: createMemoryAdjustments() });
    await expect(limiterOf(shared as never).consume(SUBJECT)).rejects.toThrow(message);
    await shared.close();
    expect((await limiter.consume(SUBJECT)).accepted).toBe(true);
  });

  it('that still waits when the limiter closes charges nothing', async () => {
    const timers = createFakeTimers(0);
    const store = createDistantStore(createMemoryStore({ clock: timers }), timers, () => 0);
    let resolve = (_: string[]): void => {};
    const limits = () => new Promise<string[]>((done) => (resolve = done));
    const limiter = createLimiter({ store, limits });
    const deciding = limiter.consume(SUBJECT);
    await limiter.close();
    resolve(['1/1m']);
    await expect(deciding).rejects.toThrow(/closed/);
  });

  it('decides behind a gate, and its error is a 500', async () => {
    const gate = createGate<string>({
      limiter: limiterOf(async ({ account }) => {
        if (account === 'broken') throw new Error('no database');
        return ['1/1m'];
      }),
      account: (request) => request,
      logger: false,
    });
    const statusOf = (entry: GateEntry) => (entry.kind === 'answer' ? entry.reply.status : 'passed');
    const statuses = [];
    for (const account of ['a', 'a', 'b', 'broken']) statuses.push(statusOf(await gate.enter(account)));
    expect(statuses).toEqual(['passed', 429, 'passed', 500]);
  });

  it('lets jobs wait', async () => {
    const worker = createJobWorker(limiterOf(async ({ account }) => [account === 'a' ? '2/1m' : '1/20ms']));
    const decisions = await Promise.all([1, 2, 3].map(() => worker.acquire({ account: 'b' })));
    expect(decisions.map(({ accepted }) => accepted)).toEqual([true, true, true]);
    await expect(worker.acquire({ account: 'a', cost: 3 })).rejects.toThrow(/never fits into a window of 2/);
    const late = worker.acquire({ account: 'a' });
    await worker.close();
    await expect(late).rejects.toThrow(/closed/);
  });

  it('is a candidate of a shadow, and its limiter may have one', async () => {
    const limiter = withShadow(
      limiterOf(async () => ['2/1m']),
      { limits: async () => ['1/1m'], store: createMemoryStore() },
    );
    for (let i = 0; i < 3; i++) await limiter.consume(SUBJECT);
    await limiter.shadow.idle();
    expect(limiter.shadow.figures().total).toMatchObject({ none: 1, onlyCandidate: 1, both: 1, failed: 0 });
  });
});
