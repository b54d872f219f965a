/** S27: a candidate decides about the same requests, and changes no answer. */
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Decision } from '../../src/core/decision.ts';
import type { LimitStore } from '../../src/core/ports.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import { type ShadowOptions, withShadow } from '../../src/shadow/shadow.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createRedisStore } from '../../src/stores/redis/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const EMAILS = { account: 'acc_1', route: 'POST /emails' };
const CURRENT = { allMethods: ['2/1m'] };
const clock = createFakeClock();
const memory = () => createMemoryStore({ clock });
const counts = { both: 0, none: 0, onlyCandidate: 0, onlyCurrent: 0, dropped: 0, failed: 0 };

function start(options: Partial<ShadowOptions> = {}, store = memory()) {
  const current = createLimiter({ store, limits: CURRENT, validate: false });
  return withShadow(current, { limits: { allMethods: ['1/1m'] }, store: memory(), ...options });
}

/** A store whose methods do all the same. */
function storeOf(act: (...given: unknown[]) => unknown): LimitStore {
  const method = (...given: unknown[]) => act(...given) as never;
  return { synchronous: false, consume: method, peek: method, settle: method, reset: method, close: method };
}

describe('figures', () => {
  it('S27: the candidate sees the offered load: also what only the current limits reject is charged there', async () => {
    const limiter = start({ limits: { allMethods: ['4/1m'] } });
    for (let i = 0; i < 5; i++) limiter.consumeSync(EMAILS);
    await limiter.shadow.idle();
    expect(limiter.shadow.figures()).toEqual({
      total: { ...counts, none: 2, onlyCurrent: 2, both: 1 },
      byRoute: { 'POST /emails': { ...counts, none: 2, onlyCurrent: 2, both: 1 } },
      newlyRejected: [],
      unlisted: 0,
    });
  });

  it('what only the candidate rejects is not charged there, and its account is listed', async () => {
    const limiter = start();
    await limiter.consume(EMAILS);
    await limiter.consume({ ...EMAILS, cost: 1 });
    await limiter.consume({ account: 'acc_2', route: '__proto__', cost: 2 });
    await limiter.shadow.idle();
    const { total, byRoute, newlyRejected } = limiter.shadow.figures();
    expect(total).toEqual({ ...counts, none: 1, onlyCandidate: 2 });
    expect(Object.keys(byRoute)).toEqual(['POST /emails', '__proto__']);
    expect(newlyRejected).toEqual([
      { account: 'acc_1', rejected: 1, route: 'POST /emails', limit: 'all-methods' },
      { account: 'acc_2', rejected: 1, route: '__proto__', limit: 'all-methods' },
    ]);
  });

  it('S31: the candidate decides about its own limits of groups, all or nothing, and settles every part', async () => {
    const groups = { customer: ['3/1h'], key: ['9/1h'] };
    const limits = { default: ['9/1m'], groups };
    const store = memory();
    const shadow = { limits: { default: ['9/1m'], groups: { customer: ['2/1h'] } }, store };
    const limiter = withShadow(createLimiter({ store: memory(), limits, validate: false }), shadow);
    const request = { account: 'a', groups: { customer: 'cus_7', key: 'k' } };
    const used = async (account: string) =>
      store.peek(account, '*', createLimiter({ limits: shadow.limits }).windowSet({ account }))[0];
    for (let i = 0; i < 4; i++) limiter.consumeSync(request);
    await limiter.shadow.idle();
    expect(limiter.shadow.figures().total).toEqual({ ...counts, none: 2, onlyCandidate: 1, both: 1 });
    expect([await used('a'), await used('group:customer:cus_7')]).toMatchObject([{ remaining: 7 }, { remaining: 0 }]);
    const decision = limiter.consumeSync({ account: 'b', groups: { key: 'k' } });
    await limiter.shadow.idle();
    await limiter.settle(decision, 3);
    await limiter.shadow.idle();
    expect(await used('b')).toMatchObject({ remaining: 6 });
  });

  it('lists 1,000 accounts and 1,000 routes, and counts the rest', async () => {
    const limiter = start({ limits: { allMethods: ['0/1m'] }, maxUnderWay: 2_000 });
    for (let i = 0; i < 1_001; i++) limiter.consumeSync({ account: `a${i}`, route: `r${i}` });
    await limiter.shadow.idle();
    const { total, byRoute, newlyRejected, unlisted } = limiter.shadow.figures();
    expect([total.onlyCandidate, Object.keys(byRoute).length, newlyRejected.length, unlisted]).toEqual([
      1_001, 1_000, 1_000, 1,
    ]);
  });

  it('onDecision gets both decisions, and may throw', async () => {
    const logger = vi.fn();
    const onDecision = vi.fn(() => {
      throw new Error('mine');
    });
    const limiter = start({ onDecision, logger });
    const current = limiter.consumeSync({ ...EMAILS, cost: 2 });
    await limiter.shadow.idle();
    expect(onDecision.mock.calls).toEqual([
      [
        {
          outcome: 'onlyCandidate',
          limit: 'all-methods',
          current,
          candidate: expect.objectContaining({ accepted: false }),
        },
      ],
    ]);
    expect(logger).toHaveBeenCalledWith('headgate: the listener onDecision failed', new Error('mine'));
  });

  it('a block rejects for both, and charges nothing', async () => {
    const limiter = start({ limits: CURRENT });
    await limiter.block(EMAILS, { forMs: 1_000 });
    await limiter.consume(EMAILS);
    await limiter.unblock(EMAILS);
    for (let i = 0; i < 2; i++) await limiter.consume(EMAILS);
    await limiter.shadow.idle();
    expect(limiter.shadow.figures().total).toEqual({ ...counts, both: 1, none: 2 });
  });
});

describe('what changes counters is mirrored', () => {
  const limits = { allMethods: ['1/1m'] };
  const outcomeAfter = async (act: (limiter: ReturnType<typeof start>, decision: Decision) => Promise<unknown>) => {
    const limiter = start({ limits });
    const decision = await limiter.consume(EMAILS);
    await act(limiter, decision);
    await limiter.consume(EMAILS);
    await limiter.shadow.idle();
    return limiter.shadow.figures().total;
  };
  const kept = { ...counts, none: 1, onlyCandidate: 1 };
  const given = { ...counts, none: 2 };

  it('a refund', async () => {
    expect(await outcomeAfter(async () => {})).toEqual(kept);
    expect(await outcomeAfter((limiter, decision) => limiter.refund(decision))).toEqual(given);
    expect(await outcomeAfter((limiter, decision) => limiter.settle(decision, 1))).toEqual(kept);
  });

  it('a reset, and no reset that has failed', async () => {
    expect(await outcomeAfter((limiter) => limiter.reset({ account: 'acc_1' }))).toEqual(given);
    expect(await outcomeAfter((limiter) => limiter.reset({ account: undefined }).catch(() => {}))).toEqual(kept);
  });

  it('a higher cost, also before an asynchronous candidate has decided', async () => {
    const store = memory();
    const slow: LimitStore = {
      ...storeOf(() => {}),
      consume: async (...given) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        return store.consume(...given);
      },
      settle: (decision, cost) => store.settle(decision, cost),
    };
    const limiter = start({ limits: { allMethods: ['2/1m'] }, store: slow });
    const decision = limiter.consumeSync(EMAILS);
    await limiter.settle(decision, 2);
    await limiter.shadow.idle();
    expect(limiter.shadow.figures().total).toEqual({ ...counts, none: 1 });
    expect(store.peek('acc_1', 'POST /emails', decision.windowSet)[0]?.remaining).toBe(0);
  });

  it('a target that the caller changes after the call is reset as it was', async () => {
    expect(
      await outcomeAfter(async (limiter) => {
        const target: { account?: string } = { account: 'acc_2' };
        const done = limiter.reset(target);
        delete target.account;
        await done;
      }),
    ).toEqual(kept);
  });

  it('nothing of an account that is not in the sample', async () => {
    const settle = vi.fn(() => true);
    const limiter = start({ sample: 1e-9, maxUnderWay: 1, store: { ...storeOf(() => true), settle } });
    for (let i = 0; i < 2; i++) await limiter.refund(limiter.consumeSync(EMAILS));
    await limiter.shadow.idle();
    expect([settle.mock.calls, limiter.shadow.figures().total]).toEqual([[], counts]);
  });

  it('not the settling of a rejection, and nothing that the limiter refuses', async () => {
    const settle = vi.fn(() => true);
    const store = memory();
    const limiter = start({
      store: { ...storeOf(() => true), consume: (...given) => store.consume(...given), settle },
    });
    for (let i = 0; i < 2; i++) limiter.consumeSync(EMAILS);
    const rejected = limiter.consumeSync(EMAILS);
    await limiter.settle(rejected, 0);
    await expect(limiter.settle(rejected, -1)).rejects.toThrow('cost must be');
    await expect(limiter.settle(undefined as never, 0)).rejects.toThrow('decision');
    await limiter.shadow.idle();
    expect(settle).not.toHaveBeenCalled();
  });
});

describe('what cannot be checked', () => {
  it('a request that the limiter refuses fails as before, and is not checked', async () => {
    const limiter = start({ sample: 0.5 });
    for (const given of [undefined, {}, { account: 'a', route: 1 }, { ...EMAILS, cost: 0 }])
      await expect(limiter.consume(given as never)).rejects.toThrow(/subject|account|route|cost/);
    expect(() => limiter.consumeSync({} as never)).toThrow('account');
    expect(limiter.shadow.figures().total).toEqual(counts);
  });

  it('a candidate that cannot decide about a subject has failed', async () => {
    const limiter = start({
      limits: () => {
        throw new Error('limits');
      },
    });
    limiter.consumeSync(EMAILS);
    await limiter.shadow.idle();
    expect(limiter.shadow.figures().total).toEqual({ ...counts, failed: 1 });
  });
});

describe('rejections', () => {
  const unhandled = vi.fn();
  beforeEach(() => void process.on('unhandledRejection', unhandled));
  afterEach(() => {
    process.off('unhandledRejection', unhandled);
    unhandled.mockReset();
  });
  const away = () => Object.assign(memory(), { synchronous: false, consume: () => Promise.reject(new Error('away')) });
  const later = () => new Promise((resolve) => setTimeout(resolve, 5));

  it('a rejection of the limiter that the caller does not handle stays unhandled, once', async () => {
    void start({}, away() as never).consume(EMAILS);
    await later();
    expect(unhandled.mock.calls.map(([error]) => error.message)).toEqual(['away']);
  });

  it('one that the caller handles is handled', async () => {
    const limiter = start({}, away() as never);
    await expect(limiter.consume(EMAILS)).rejects.toThrow('away');
    await later();
    expect([unhandled.mock.calls, limiter.shadow.figures().total]).toEqual([[], counts]);
  });

  it('a store of the limiter that returns no decision does not end the process', async () => {
    const limiter = start({}, Object.assign(memory(), { consume: () => null }) as never);
    expect(limiter.consumeSync(EMAILS)).toBe(null);
    await limiter.shadow.idle();
    expect(limiter.shadow.figures().total).toEqual({ ...counts, failed: 1 });
  });

  it('checks that wait when a listener closes the limiter do not run', async () => {
    const store = memory();
    const consume = vi.spyOn(store, 'consume');
    const limiter = start({ store, onDecision: () => void limiter.close() });
    for (let i = 0; i < 3; i++) limiter.consumeSync(EMAILS);
    await later();
    expect(consume).toHaveBeenCalledTimes(1);
  });
});

describe('the bound', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  it('more requests than maxUnderWay are dropped, and counted; a hung store gives its places back', async () => {
    const answers: ((decision: unknown) => void)[] = [];
    const limiter = start({ store: storeOf(() => new Promise((resolve) => answers.push(resolve))), maxUnderWay: 3 });
    for (let i = 0; i < 5; i++) limiter.consumeSync(EMAILS);
    await turn();
    expect([answers.length, limiter.shadow.figures().total.dropped]).toEqual([3, 2]);
    vi.advanceTimersByTime(1_000);
    expect(limiter.shadow.figures().total).toEqual({ ...counts, dropped: 2, failed: 3 });
    // Until the store answers, one call at a time asks it.
    for (let i = 0; i < 3; i++) limiter.consumeSync(EMAILS);
    await turn();
    expect([answers.length, limiter.shadow.figures().total.dropped]).toEqual([4, 4]);
    // A late answer changes no figure, and says that the store is back.
    answers[0]?.({ accepted: true, degraded: false });
    await turn();
    for (let i = 0; i < 2; i++) limiter.consumeSync(EMAILS);
    await turn();
    expect([answers.length, limiter.shadow.figures().total]).toEqual([6, { ...counts, dropped: 4, failed: 3 }]);
  });

  it('later calls have later deadlines', async () => {
    const limiter = start({ store: storeOf(() => new Promise(() => {})), timeoutMs: 100 });
    limiter.consumeSync(EMAILS);
    await turn();
    vi.advanceTimersByTime(60);
    limiter.consumeSync(EMAILS);
    await turn();
    vi.advanceTimersByTime(60);
    expect(limiter.shadow.figures().total.failed).toBe(1);
    vi.advanceTimersByTime(60);
    expect(limiter.shadow.figures().total.failed).toBe(2);
  });

  it('a check begins after the caller has its decision, at most 100 per turn of the event loop', async () => {
    const consume = vi.fn(memory().consume);
    const limiter = start({ store: { ...storeOf(() => true), consume } });
    for (let i = 0; i < 150; i++) limiter.consumeSync(EMAILS);
    await limiter.consume(EMAILS);
    expect(consume).not.toHaveBeenCalled();
    await turn();
    expect(consume).toHaveBeenCalledTimes(100);
    await limiter.shadow.idle();
    expect(consume).toHaveBeenCalledTimes(151);
  });

  it.each([
    ['without setImmediate', undefined],
    [
      'whose setImmediate throws',
      () => {
        throw new Error('not supported');
      },
    ],
  ])('on a runtime %s a timer is used', async (_, setImmediate) => {
    vi.stubGlobal('setImmediate', setImmediate);
    const limiter = start();
    limiter.consumeSync(EMAILS);
    vi.unstubAllGlobals();
    expect(limiter.shadow.figures().total.none).toBe(0);
    await vi.advanceTimersByTimeAsync(1);
    expect(limiter.shadow.figures().total.none).toBe(1);
  });

  it('close() closes both stores, waits for no candidate, and frees what waits', async () => {
    const close = vi.fn(() => new Promise<void>(() => {}));
    const limiter = start({ store: { ...storeOf(() => new Promise(() => {})), close } });
    limiter.consumeSync(EMAILS);
    await turn();
    const idle = limiter.shadow.idle();
    limiter.consumeSync(EMAILS);
    await limiter.close();
    await idle;
    await limiter.close();
    expect(close).toHaveBeenCalledTimes(1);
    expect(() => limiter.consumeSync(EMAILS)).toThrow('closed');
  });
});

describe('options', () => {
  const store = memory();
  it.each<[what: string, options: object, message: RegExp]>([
    ['no store', { store: undefined }, /^store: must have consume\(\)/],
    ['an unknown option', { simple: 1 }, /unknown option/],
    ['no limits', { limits: {} }, /^limits/],
    ['a sample of 0', { sample: 0 }, /^sample: must be more than 0/],
    ['a sample above 1', { sample: 1.1 }, /^sample/],
    ['a sample that is no number', { sample: Number.NaN }, /^sample/],
    ['no place', { maxUnderWay: 0 }, /^maxUnderWay/],
    ['no time', { timeoutMs: 0 }, /^timeoutMs/],
    ['onDecision', { onDecision: 1 }, /^onDecision/],
    ['the store of the limiter', { store }, /^store: must not be the store of the limiter/],
  ])('%s is refused', (_what, options, message) => {
    expect(() => start(options, store)).toThrow(message);
  });

  it('what is no limiter is refused', () => {
    expect(() => withShadow({} as never, { limits: CURRENT, store })).toThrow(/^limiter: must be/);
  });

  it('a store in Redis with the prefix of the limiter is refused, also of another client', () => {
    const redisStore = (prefix: string) => createRedisStore(new Redis({ lazyConnect: true }), { prefix });
    expect(() => start({ store: redisStore('a') }, redisStore('a') as never)).toThrow(
      'store: must have another prefix than the limiter\'s, such as "a-shadow", got "a"',
    );
    start({ store: redisStore('a-shadow') }, redisStore('a') as never);
  });
});

it('S27: a sample has the same accounts in every process', () => {
  const listed = (sample: number) => {
    const limiter = start({ sample, maxUnderWay: 10_000 });
    for (let i = 0; i < 1_000; i++) limiter.consumeSync({ account: `acc_${i}`, route: 'r' });
    return limiter.shadow.idle().then(() => limiter.shadow.figures().total.none);
  };
  return Promise.all([listed(0.1), listed(0.5), listed(1)]).then((sizes) => expect(sizes).toEqual([107, 498, 1_000]));
});

it('every other call goes to the limiter', async () => {
  const limiter = start();
  expect(limiter.synchronous).toBe(true);
  expect(limiter.windowSet(EMAILS).windows).toHaveLength(1);
  limiter.adjust({ account: 'acc_1' }, ['9/1m']);
  expect(limiter.windowSet(EMAILS).maxes[0]).toBe(9);
  await limiter.block(EMAILS, { forMs: 1_000, reason: 'INC-12' });
  expect(await limiter.blocked(EMAILS)).toMatchObject({ reason: 'INC-12' });
});

describe('requests in flight', () => {
  it('S29: a rejection by them counts as one of both, and a candidate cannot bound them', async () => {
    const limits = { allMethods: { windows: ['9/1m'], inFlight: 1 } };
    expect(() => withShadow(createLimiter({ limits }), { limits, store: createMemoryStore() })).toThrow(
      'limits: must not have inFlight: a candidate decides when a request is under way',
    );
    const seen: unknown[] = [];
    const limiter = withShadow(createLimiter({ limits, validate: false }), {
      limits: { allMethods: ['1/1m'] },
      store: createMemoryStore(),
      onDecision: ({ outcome, limit, candidate }) => seen.push([outcome, limit, candidate?.accepted]),
    });
    const subject = { account: 'a', route: 'r' };
    const decision = await limiter.consume(subject);
    await limiter.consume(subject);
    expect([await limiter.release(decision), await limiter.inFlight(subject)]).toEqual([true, { running: 0, max: 1 }]);
    await limiter.consume(subject);
    await limiter.shadow.idle();
    expect(seen).toEqual([
      ['none', 'none', true],
      ['both', 'in_flight', undefined],
      ['onlyCandidate', 'all-methods', false],
    ]);
  });
});
