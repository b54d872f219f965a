import { describe, expect, it } from 'vitest';
import { createWindowSet } from '../../src/core/window-set.ts';
import type { GateEvent } from '../../src/gate/index.ts';
import { createGate, createLimiter, isHeadgateError, type Limiter, type LimiterOptions } from '../../src/index.ts';
import { withShadow } from '../../src/shadow/shadow.ts';
import { createSharedLimits } from '../../src/shared-limits/create-shared-limits.ts';
import { createMemoryAdjustments } from '../../src/shared-limits/stores/memory.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import type { LimitStore } from '../../src/stores.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const SUBJECT = { account: 'acc', route: 'POST /emails' };
const YEAR_MS = 365 * 86_400_000;

function setUp() {
  const clock = createFakeClock(1_000_000);
  const limiter = createLimiter({ store: createMemoryStore({ clock }), limits: { allMethods: ['5/1m'] } });
  return { clock, limiter };
}

/** The code and the message of the error. */
const errorOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'no error',
    (error) => `${error.code}: ${error.message}`,
  );

describe('limiter.block', () => {
  it('S21: rejects every route of the account until it is over; the decision says how long and why', async () => {
    const { clock, limiter } = setUp();
    await limiter.block({ account: 'acc' }, { forMs: 60_000, reason: 'card declined' });
    clock.advance(20_000);
    const decision = limiter.consumeSync(SUBJECT);
    expect(decision).toMatchObject({
      accepted: false,
      blocked: { forMs: 40_000, reason: 'card declined' },
      shown: undefined,
      trace: [],
      impossible: false,
    });
    expect(JSON.parse(JSON.stringify(decision)).blocked).toEqual({ forMs: 40_000, reason: 'card declined' });
    expect(decision.asDegraded()).toMatchObject({ accepted: false, degraded: true, blocked: { forMs: 40_000 } });
    expect((await limiter.consume({ account: 'acc', route: 'another' })).accepted).toBe(false);
    expect((await limiter.consume({ account: 'another', route: 'POST /emails' })).accepted).toBe(true);
    expect(await limiter.refund(decision)).toBe(false);
    expect((await limiter.peek(SUBJECT))[0]?.remaining).toBe(5);
    clock.advance(39_999);
    expect(limiter.consumeSync(SUBJECT).accepted).toBe(false);
    clock.advance(1);
    expect(limiter.consumeSync(SUBJECT)).toMatchObject({ accepted: true, blocked: undefined });
  });

  it('S21: of a route leaves the others; of two blocks the one that ends last counts', async () => {
    const { limiter } = setUp();
    await limiter.block(SUBJECT, { forMs: 2_000, reason: 'route' });
    expect(limiter.consumeSync({ account: 'acc', route: 'GET /' }).accepted).toBe(true);
    await limiter.block({ account: 'acc' }, { forMs: 1_000 });
    expect(limiter.consumeSync(SUBJECT).blocked).toEqual({ forMs: 2_000, reason: 'route' });
    expect(await limiter.blocked(SUBJECT)).toEqual({ forMs: 2_000, reason: 'route' });
    expect(await limiter.blocked({ account: 'acc' })).toEqual({ forMs: 1_000, reason: undefined });
    await limiter.unblock({ account: 'acc' });
    expect(await limiter.blocked({ account: 'acc' })).toBeUndefined();
    expect(limiter.consumeSync(SUBJECT).accepted).toBe(false);
    await limiter.unblock(SUBJECT);
    expect(limiter.consumeSync(SUBJECT).accepted).toBe(true);
    expect(await limiter.unblock({ account: 'never blocked' })).toBeUndefined();
  });

  it('S21: the last call wins, also if it is shorter; a reset does not lift it', async () => {
    const { limiter } = setUp();
    await limiter.block({ account: 'acc' }, { forMs: 60_000, reason: 'first' });
    await limiter.block({ account: 'acc' }, { forMs: 1_000 });
    for (const target of [SUBJECT, { account: 'acc' }, { route: SUBJECT.route }, {}]) await limiter.reset(target);
    expect(limiter.consumeSync(SUBJECT).blocked).toEqual({ forMs: 1_000, reason: undefined });
  });

  it('S21: a request without any window is not limited, and so not blocked', async () => {
    const limiter = createLimiter({ store: createMemoryStore(), limits: { routes: { limited: ['1/1m'] } } });
    await limiter.block({ account: 'acc' }, { forMs: 60_000 });
    expect(limiter.consumeSync({ account: 'acc', route: 'limited' }).accepted).toBe(false);
    expect(limiter.consumeSync({ account: 'acc', route: 'free' }).accepted).toBe(true);
  });

  it('takes a block of up to a year, and a reason of up to 200 characters', async () => {
    const { limiter } = setUp();
    const block = (forMs: unknown, reason?: unknown) =>
      errorOf(limiter.block({ account: 'acc' }, { forMs, reason } as never));
    expect(await block(YEAR_MS, 'x'.repeat(200))).toBe('no error');
    for (const forMs of [0, -1, 1.5, YEAR_MS + 1, Number.POSITIVE_INFINITY, Number.NaN, '5', undefined])
      expect(await block(forMs)).toMatch(
        /^invalid_option: block.forMs: must be an integer of milliseconds from 1 to 3153/,
      );
    for (const reason of ['x'.repeat(201), 5, null])
      expect(await block(1, reason)).toMatch(/^invalid_option: block.reason: must be a text of at most 200 characters/);
    expect(await errorOf(limiter.block({ account: 'acc' }, { ms: 5 } as never))).toMatch(/unknown option/);
    expect(await errorOf(limiter.block({ account: 'acc' }, 5 as never))).toMatch(/^invalid_option: block/);
  });

  it.each(['block', 'unblock', 'blocked'] as const)('%s checks its target', async (method) => {
    const { limiter } = setUp();
    const call = (target: unknown) => errorOf(limiter[method](target as never, { forMs: 1 }));
    expect(await call({})).toBe('invalid_subject: account must be a string, got undefined');
    expect(await call({ account: 'acc', route: undefined })).toBe(
      'invalid_subject: route must be a string, got undefined',
    );
    expect(await call({ account: 'acc', rout: 'r' })).toMatch(/unknown option/);
    expect(await call('acc')).toMatch(/^invalid_option: target/);
    await limiter.close();
    expect(await call({ account: 'acc' })).toMatch(/^closed: /);
  });

  it('is an error if the store has no blocks', async () => {
    const { consume, peek, settle, reset } = createMemoryStore();
    const store: LimitStore = { synchronous: false, consume, peek, settle, reset };
    const limiter = createLimiter({ store, limits: { allMethods: ['5/1m'] } });
    expect(await errorOf(limiter.block({ account: 'acc' }, { forMs: 1 }))).toMatch(
      /^invalid_option: store: must have block\(\): this store cannot block/,
    );
    expect(await errorOf(limiter.unblock({ account: 'acc' }))).toMatch(/^invalid_option: store/);
  });
});

describe('blocks of a memory store', () => {
  it('S18, S21: a store full of blocks refuses a new one, keeps the others, and has room once one is over', async () => {
    const clock = createFakeClock(0);
    const limiter = createLimiter({
      store: createMemoryStore({ clock, maxKeys: 3 }),
      limits: { allMethods: ['5/1m'] },
    });
    for (const account of ['a', 'b', 'c']) await limiter.block({ account }, { forMs: 1_000 });
    const refused = await limiter.block({ account: 'd' }, { forMs: 1_000 }).catch((error: unknown) => error);
    expect(isHeadgateError(refused, 'store_full')).toBe(true);
    await limiter.block({ account: 'a' }, { forMs: 5_000 });
    for (const account of ['a', 'b', 'c']) expect(await limiter.blocked({ account })).toBeDefined();
    clock.advance(1_000);
    await limiter.block({ account: 'd' }, { forMs: 1_000 });
    await limiter.block({ account: 'e', route: 'r' }, { forMs: 1_000 });
    expect(await limiter.blocked({ account: 'a' })).toMatchObject({ forMs: 4_000 });
  });

  it('S21: blocks that are over do not pile up, so a small store takes any number one after another', async () => {
    const clock = createFakeClock(0);
    const limiter = createLimiter({
      store: createMemoryStore({ clock, maxKeys: 10 }),
      limits: { allMethods: ['5/1m'] },
    });
    for (let i = 0; i < 10_000; i++) {
      await limiter.block(i % 2 ? { account: `a${i}` } : { account: `a${i}`, route: 'r' }, { forMs: 5 });
      clock.advance(1);
    }
    expect(await limiter.blocked({ account: 'a9999' })).toEqual({ forMs: 4, reason: undefined });
  });
});

describe('a gate', () => {
  it('S8, S21: answers 429 with retry-after and the reason, without rate-limit fields', async () => {
    const { clock, limiter } = setUp();
    const events: GateEvent[] = [];
    const gate = createGate<object>({
      limiter,
      account: () => 'acc',
      route: () => 'POST /emails',
      headers: ['x-ratelimit', 'ietf'],
      onEvent: (event) => events.push(event),
    });
    await limiter.block({ account: 'acc' }, { forMs: 1_500, reason: 'Too many failed payments.' });
    const entry = await gate.enter({}, 'req-1');
    if (entry.kind !== 'answer') throw new Error('the request was let through');
    expect(entry.reply.status).toBe(429);
    expect(entry.reply.headers['retry-after']).toBe('2');
    expect(Object.keys(entry.reply.headers).filter((name) => name.includes('ratelimit'))).toEqual([]);
    expect(JSON.parse(String(entry.reply.body))).toMatchObject({
      type: 'api/too_many_requests',
      detail: 'Requests like this one are blocked for this account; retry in 2 s. Reason: Too many failed payments.',
    });
    expect(events).toMatchObject([{ type: 'decision', decision: { accepted: false, blocked: { forMs: 1_500 } } }]);
    await limiter.block({ account: 'acc' }, { forMs: 1_500 });
    clock.advance(2_000);
    expect((await gate.enter({})).kind).toBe('proceed');
  });
});

describe('limiter.block with reset', () => {
  it('S36: is a fresh start when the block ends, in every window of every route of the account', async () => {
    const clock = createFakeClock(1_000_000);
    const limits = {
      allMethods: { windows: ['3/1h'], scope: 'account' as const },
      routes: { 'POST /login': ['2/1m'] },
    };
    const limiter = createLimiter({ store: createMemoryStore({ clock }), limits });
    const login = { account: 'acc', route: 'POST /login' };
    const left = async (subject = login) => (await limiter.peek(subject)).map(({ remaining }) => remaining);
    for (const subject of [login, { ...login, account: 'other' }]) limiter.consumeSync({ ...subject, cost: 2 });
    await limiter.block({ account: 'acc' }, { forMs: 900_000, reset: true, reason: 'Too many attempts.' });
    expect([await left(), await left({ ...login, account: 'other' })]).toEqual([
      [2, 3],
      [0, 1],
    ]);
    expect(limiter.consumeSync(login).blocked).toEqual({ forMs: 900_000, reason: 'Too many attempts.' });
    clock.advance(900_000);
    expect(limiter.consumeSync(login)).toMatchObject({ accepted: true, shown: { remaining: 2 } });
    await limiter.block(login, { forMs: 1, reset: true });
    expect(await left()).toEqual([2, 2]);
    await limiter.block(login, { forMs: 1, reset: false });
    expect(await left()).toEqual([2, 2]);
  });

  it('tells the store the longest duration that a window ever had', async () => {
    const told: unknown[] = [];
    const { consume, peek, settle, reset } = createMemoryStore() as never;
    const block = (...given: unknown[]) => void told.push(given.at(-1));
    const store = {
      ...{ synchronous: true, consume, peek, settle, reset, block, unblock: block, blocked: block },
    } as never;
    const blockWith = async (limits: LimiterOptions['limits'], use?: (limiter: Limiter) => unknown) => {
      const limiter = createLimiter({ store, limits, validate: false });
      await use?.(limiter);
      await limiter.block({ account: 'acc' }, { forMs: 1, reset: true });
      return told.pop();
    };
    const DAY = { longestMs: 86_400_000 };
    expect(await blockWith(['1/1m', '9/1d'])).toEqual(DAY);
    expect(await blockWith({ default: ['1/1m'], accounts: { acc: { routes: { r: ['1/1d'] } } } })).toEqual(DAY);
    expect(
      await blockWith(['1/1m'], (limiter) => {
        limiter.adjust({ account: 'acc' }, ['1/1d']);
        limiter.adjust({ account: 'acc' }, 'recommended');
      }),
    ).toEqual(DAY);
    const used = (limiter: Limiter) => limiter.windowSet({ account: 'acc', route: 'r', limits: ['5/1h'] });
    expect(await blockWith(() => ['1/1d'], used)).toEqual(DAY);
    expect(await blockWith(['1/1m'], used)).toEqual({ longestMs: 3_600_000 });
    const source = { windowSet: () => createWindowSet([], []) };
    expect(await blockWith(source)).toEqual({ longestMs: 400 * 86_400_000 });
    expect(await blockWith(createSharedLimits({ base: ['9/1d'], adjustments: createMemoryAdjustments() }))).toEqual(
      DAY,
    );
  });

  it('is refused if `reset` is not true or false', async () => {
    const { limiter } = setUp();
    expect(await errorOf(limiter.block({ account: 'acc' }, { forMs: 1, reset: 1 } as never))).toBe(
      'invalid_option: block.reset: must be true or false, got 1',
    );
    expect(limiter.consumeSync(SUBJECT).accepted).toBe(true);
  });

  it('S27, S36: resets the candidate of a shadow as well', async () => {
    const limiter = withShadow(createLimiter({ limits: ['5/1m'] }), { limits: ['1/1m'], store: createMemoryStore() });
    const outcomes = async () => {
      limiter.consumeSync({ account: 'acc' });
      await limiter.shadow.idle();
      return limiter.shadow.figures().total;
    };
    expect(await outcomes()).toMatchObject({ none: 1, onlyCandidate: 0 });
    await limiter.block({ account: 'acc' }, { forMs: 1, reset: true });
    await limiter.unblock({ account: 'acc' });
    expect(await outcomes()).toMatchObject({ none: 2, onlyCandidate: 0 });
  });
});
