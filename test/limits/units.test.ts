import { describe, expect, it } from 'vitest';
import { isHeadgateError } from '../../src/base/errors.ts';
import type { Cost } from '../../src/core/unit.ts';
import { createReceipts } from '../../src/limits/index.ts';
import { createLimiter } from '../../src/limits/limiter.ts';
import type { Limits } from '../../src/limits/window-set-source.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const LIST: Limits = ['3/1m', '1000 tokens/1m', '5000 tokens/1d'];
const LAYERED: Limits = {
  allMethods: ['10/1m', '1000 tokens/1m'],
  routes: { 'POST /chat': ['2/1m', '500 tokens/1m'], 'POST /draw': ['4 images/1m'] },
};

function setUp(limits: Limits, rest: object = {}) {
  const clock = createFakeClock(1_000);
  const store = createMemoryStore({ clock });
  const limiter = createLimiter({ store, limits, validate: false, ...rest });
  const consume = (cost?: Cost, route?: string) =>
    limiter.consumeSync({ account: 'a', ...(route === undefined ? {} : { route }), cost });
  const left = async (route?: string): Promise<Record<string, number>> => {
    const windows = await limiter.peek({ account: 'a', ...(route === undefined ? {} : { route }) });
    return Object.fromEntries(
      windows.map((each) => [`${each.limit} ${each.durationMs} ${each.unit ?? ''}`.trim(), each.remaining]),
    );
  };
  return { clock, store, limiter, consume, left };
}

const codeOf = (attempt: () => unknown): unknown => {
  try {
    return attempt();
  } catch (error) {
    return isHeadgateError(error) ? `${error.code}: ${error.message}` : error;
  }
};

describe('S33: a decision about units', () => {
  it('charges each unit that the cost names, in one decision', async () => {
    const { consume, left } = setUp(LIST);
    const decision = consume({ requests: 1, tokens: 800 });
    expect(decision).toMatchObject({ accepted: true, account: 'a', route: '*', cost: 1, impossible: false });
    expect(decision.costs).toEqual({ requests: 1, tokens: 800 });
    expect(decision.trace).toEqual([
      expect.objectContaining({ limit: 'all-methods', max: 3, remaining: 2 }),
      expect.objectContaining({ limit: 'all-methods', max: 1_000, remaining: 200, unit: 'tokens' }),
      expect.objectContaining({ limit: 'all-methods', max: 5_000, remaining: 4_200, unit: 'tokens' }),
    ]);
    expect(decision.trace[0]).not.toHaveProperty('unit');
    expect(decision.windowSet.windows.map(({ max }) => max)).toEqual([3, 1_000, 5_000]);
    expect(await left()).toEqual({
      'all-methods 60000': 2,
      'all-methods 60000 tokens': 200,
      'all-methods 86400000 tokens': 4_200,
    });
  });

  it('S6: an accepted request shows its last window of requests; without one, the last of the first unit', () => {
    const { consume } = setUp(LIST);
    expect(consume({ requests: 1, tokens: 1 }).shown).toMatchObject({ max: 3, remaining: 2 });
    expect(consume({ tokens: 1 }).shown).toMatchObject({ max: 5_000, remaining: 4_998, unit: 'tokens' });
    expect(consume(1).shown).toMatchObject({ max: 3, remaining: 1 });
  });

  it('S6: the window of all routes is shown, also if a unit has windows of the route too', () => {
    const limits: Limits = {
      allMethods: { windows: ['9 tokens/1m'], scope: 'account' },
      routes: { r: ['5 tokens/1m'] },
    };
    const { consume } = setUp(limits);
    expect(consume({ tokens: 2 }, 'r').shown).toMatchObject({ limit: 'all-methods', max: 9, remaining: 7 });
    expect(consume({ tokens: 4 }, 'r').shown).toMatchObject({ limit: 'route', max: 5, remaining: 3 });
  });

  it('S5: a unit that does not fit rejects the request, and no unit is charged or started', async () => {
    const { clock, consume, left } = setUp(LIST);
    const before = await left();
    const rejected = consume({ requests: 1, tokens: 1_001 });
    expect(rejected).toMatchObject({ accepted: false, impossible: true, cost: 1, rejectedBy: 'account' });
    expect(rejected.shown).toMatchObject({ max: 1_000, remaining: 1_000, unit: 'tokens' });
    expect(rejected.costs).toEqual({ requests: 1, tokens: 1_001 });
    // The earlier windows were checked, and are as they were.
    expect(rejected.trace[0]).toMatchObject({ max: 3, remaining: 3, resetMs: 60_000, startedAt: undefined });
    expect(await left()).toEqual(before);
    consume({ requests: 1, tokens: 600 });
    clock.advance(10_000);
    expect(consume({ requests: 1, tokens: 600 })).toMatchObject({ accepted: false, impossible: false });
    expect((await left())['all-methods 60000']).toBe(2);
    // The rejected request has not begun the window of requests anew.
    clock.advance(50_000);
    expect(await left()).toEqual({ ...before, 'all-methods 86400000 tokens': 4_400 });
  });

  it('S2: requests are checked before other units', () => {
    const { consume } = setUp(LIST);
    for (let i = 0; i < 3; i++) consume();
    expect(consume({ requests: 1, tokens: 9_999 }).shown).toMatchObject({ max: 3, remaining: 0 });
  });

  it('a unit that the cost does not name costs nothing, and is not checked', async () => {
    const { consume, left } = setUp(LIST);
    consume({ tokens: 1_000 });
    expect(consume(1).accepted).toBe(true);
    expect(consume({ requests: 1 }).trace).toHaveLength(1);
    expect(consume({ tokens: 1 }).accepted).toBe(false);
    expect(await left()).toMatchObject({ 'all-methods 60000': 1 });
  });

  it('limits of a route and of all routes are checked per unit, and routes are counted apart', async () => {
    const { consume, left } = setUp(LAYERED);
    expect(consume({ requests: 1, tokens: 400 }, 'POST /chat').trace.map(({ max }) => max)).toEqual([
      2, 10, 500, 1_000,
    ]);
    expect(consume({ requests: 1, tokens: 400 }, 'POST /chat').shown).toMatchObject({ limit: 'route', max: 500 });
    expect(consume({ requests: 1, tokens: 900 }, 'GET /x').accepted).toBe(true);
    expect(consume({ requests: 1, images: 4 }, 'POST /draw').accepted).toBe(true);
    expect(consume({ requests: 1, images: 1 }, 'POST /draw').shown).toMatchObject({ max: 4, unit: 'images' });
    expect(await left('POST /chat')).toEqual({
      'route 60000': 1,
      'all-methods 60000': 9,
      'route 60000 tokens': 100,
      'all-methods 60000 tokens': 600,
    });
  });

  it('a unit of other limits than those that apply is not counted, because a customer may not have that limit', async () => {
    const { consume } = setUp({ default: ['5/1m', '9 tokens/1m'], plans: { big: { allMethods: ['50/1m'] } } });
    const { limiter } = setUp({ default: ['5/1m', '9 tokens/1m'], plans: { big: { allMethods: ['50/1m'] } } });
    expect(consume({ requests: 1, tokens: 10 }).accepted).toBe(false);
    const cost = { requests: 1, tokens: 10 };
    const decision = limiter.consumeSync({ account: 'a', plan: 'big', cost });
    expect(decision).toMatchObject({ accepted: true, costs: cost });
    expect(decision.trace).toHaveLength(1);
    expect(await limiter.settle(decision, { tokens: 5 })).toBe(false);
    expect(await limiter.settle(decision, { requests: 2 })).toBe(true);
  });

  it('limits without any window take every known unit', () => {
    const { limiter } = setUp({ default: ['9 tokens/1m'], plans: { free: { allMethods: [] } } });
    const decision = limiter.consumeSync({ account: 'a', plan: 'free', cost: { tokens: 800 } });
    expect(decision).toMatchObject({ accepted: true, cost: 0, costs: { tokens: 800 }, shown: undefined, trace: [] });
  });

  it('a request without a promise, and one with, are decided alike', async () => {
    const { limiter } = setUp((() => LIST) as Limits, { units: ['tokens'] });
    const cost = { requests: 1, tokens: 600 };
    const decision = await limiter.consume({ account: 'a', cost });
    expect(decision).toMatchObject({ accepted: true, costs: cost });
    expect((await limiter.consume({ account: 'a', cost })).shown).toMatchObject({ unit: 'tokens' });
  });

  it('a cost that the caller changes while the limits are awaited does not count', async () => {
    const { limiter } = setUp(async () => LIST as string[], { units: ['tokens'] });
    const cost = { requests: 1, tokens: 600 };
    const decided = limiter.consume({ account: 'a', cost });
    cost.tokens = 1;
    expect((await decided).costs).toEqual({ requests: 1, tokens: 600 });
  });

  it('has all of it in JSON, for logs', () => {
    const { consume } = setUp(LIST);
    expect(JSON.parse(JSON.stringify(consume({ tokens: 5 })))).toMatchObject({
      accepted: true,
      cost: 0,
      costs: { tokens: 5 },
      route: '*',
      shown: { unit: 'tokens', remaining: 4_995 },
    });
  });
});

describe('S33: a wrong cost is an error, and charges nothing', () => {
  it.each<[string, unknown, RegExp]>([
    [
      'an unknown unit',
      { requests: 1, tokns: 5 },
      /^invalid_cost: cost has the unknown unit "tokns" \(expected requests or tokens\), got 5$/,
    ],
    ['an inherited name', { constructor: 5 }, /unknown unit "constructor"/],
    ['no unit', {}, /^invalid_cost: cost must name a unit \(expected requests or tokens\), got undefined$/],
    ['only undefined', { tokens: undefined }, /must name a unit/],
    ['0', { requests: 1, tokens: 0 }, /^invalid_cost: cost\.tokens must be an integer from 1 to/],
    ['a fraction', { tokens: 1.5 }, /cost\.tokens must be an integer/],
    ['a negative number', { tokens: -1 }, /cost\.tokens must be an integer/],
    ['a text', { tokens: '5' }, /cost\.tokens must be an integer from 1 to \d+, got "5"/],
    ['null', null, /^invalid_cost: cost must be an integer from 1 to \d+, got null$/],
    ['an array', [1], /^invalid_cost: cost must be an integer/],
    ['a map', new Map([['tokens', 1]]), /^invalid_cost: cost must be an integer/],
  ])('%s', async (_, cost, message) => {
    const { consume, limiter, left } = setUp(LIST);
    const before = await left();
    expect(codeOf(() => consume(cost as Cost))).toMatch(message);
    await expect(limiter.consume({ account: 'a', cost: cost as Cost })).rejects.toMatchObject({ code: 'invalid_cost' });
    await expect(limiter.charge({ account: 'a', cost: cost as Cost })).rejects.toMatchObject({ code: 'invalid_cost' });
    expect(await left()).toEqual(before);
  });

  it('a cost that names none of the windows would be limited by nothing', () => {
    const { consume } = setUp(['1000 tokens/1m']);
    const message = 'cost must name a unit that the windows of the request count (expected tokens), got "requests"';
    for (const cost of [undefined, 1, { requests: 1 }])
      expect(codeOf(() => consume(cost))).toBe(`invalid_cost: ${message}`);
    expect(consume({ tokens: 1 }).accepted).toBe(true);
  });

  it('S31: a cost that names none of the windows of a group, neither', async () => {
    const limits = { default: ['5/1m', '100 tokens/1m'], groups: { org: ['1000 tokens/1m'] } };
    const limiter = createLimiter({ store: createMemoryStore(), limits });
    const message = 'cost must name a unit that the windows of the group org count (expected tokens), got "requests"';
    await expect(limiter.consume({ account: 'a', groups: { org: 'o' } })).rejects.toThrow(message);
    expect((await limiter.peek({ account: 'a' })).map(({ remaining }) => remaining)).toEqual([5, 100]);
    expect((await limiter.consume({ account: 'a' })).accepted).toBe(true);
    await limiter.close();
  });

  it('limits without units take no unit but requests', async () => {
    const { limiter, consume } = setUp(['5/1m']);
    expect(consume({ requests: 2 }).shown).toMatchObject({ remaining: 3 });
    expect(codeOf(() => consume({ tokens: 1 }))).toMatch(/unknown unit "tokens" \(expected requests\)/);
    await expect(limiter.settle(consume(), { tokens: 1 })).rejects.toThrow('unknown unit "tokens"');
  });
});

describe('S33: the units of the limits', () => {
  it('a route that ends as those of units do is refused, so that no caller can choose the counters of a unit', async () => {
    const { limiter, consume } = setUp(LAYERED);
    const message = 'route must not end with #tokens, got "POST /chat#tokens": its windows are counted so';
    expect(codeOf(() => consume(1, 'POST /chat#tokens'))).toBe(`invalid_subject: ${message}`);
    await expect(limiter.peek({ account: 'a', route: '#images' })).rejects.toThrow('must not end with #images');
    expect(consume(1, 'POST /chat#other').accepted).toBe(true);
    expect(setUp(['5/1m']).consume(1, 'POST /chat#tokens').accepted).toBe(true);
  });

  it.each([[['Tokens']], [['requests']], ['tokens'], [[5]], [null]])('the option units must not be %j', (units) => {
    expect(codeOf(() => setUp(LIST, { units }))).toMatch(
      /^invalid_option: units: must be a list of units beside requests/,
    );
  });

  it('a unit that the option does not list is refused, wherever it comes from: no request could name it', async () => {
    const message =
      /the option units must list this unit, because the limits of the start do not count it, got "images"/;
    const { limiter } = setUp(LIST);
    expect(() => limiter.adjust({ account: 'a' }, ['5 images/1m'])).toThrow(message);
    expect(() => limiter.consumeSync({ account: 'a', route: 'r', limits: ['5 images/1m'] })).toThrow(message);
    const ofFunction = setUp(() => ['5 images/1m']).limiter;
    expect(() => ofFunction.consumeSync({ account: 'a', cost: { images: 1 } })).toThrow(message);
    const listed = setUp(LIST, { units: ['images'] });
    listed.limiter.adjust({ account: 'a' }, ['5 images/1m']);
    expect(listed.consume({ images: 5 }).accepted).toBe(true);
    expect(listed.consume({ images: 1 }).accepted).toBe(false);
  });

  it('S10: an adjustment of a max keeps the count of the unit', async () => {
    const { limiter, consume, left } = setUp(LIST);
    consume({ requests: 1, tokens: 700 });
    limiter.adjust({}, ['3/1m', '800 tokens/1m']);
    expect(await left()).toEqual({ 'all-methods 60000': 2, 'all-methods 60000 tokens': 100 });
  });
});

describe('S13, S33: settling', () => {
  it('moves the named unit alone, once; the others can still be settled', async () => {
    const { limiter, consume, left } = setUp(LIST);
    const decision = consume({ requests: 1, tokens: 800 });
    expect(await limiter.settle(decision, { tokens: 1_312 })).toBe(true);
    expect(await left()).toEqual({
      'all-methods 60000': 2,
      'all-methods 60000 tokens': 0,
      'all-methods 86400000 tokens': 3_688,
    });
    expect(await limiter.settle(decision, { tokens: 1 })).toBe(false);
    expect(await limiter.settle(decision, { requests: 0, tokens: 0 })).toBe(true);
    expect(await left()).toMatchObject({ 'all-methods 60000': 3, 'all-methods 86400000 tokens': 3_688 });
  });

  it('a number is requests, and 0 is a refund of all units', async () => {
    const { limiter, consume, left } = setUp(LIST);
    const full = await left();
    const one = consume({ requests: 1, tokens: 800 });
    expect(await limiter.settle(one, 2)).toBe(true);
    expect(await left()).toMatchObject({ 'all-methods 60000': 1, 'all-methods 60000 tokens': 200 });
    expect(await limiter.refund(one)).toBe(true);
    expect(await left()).toMatchObject({ 'all-methods 60000': 1, 'all-methods 60000 tokens': 1_000 });
    const other = consume({ requests: 1, tokens: 800 });
    expect(await limiter.settle(other, 0)).toBe(true);
    expect(await limiter.refund(other)).toBe(false);
    expect(await left()).toMatchObject({ ...full, 'all-methods 60000': 1 });
  });

  it('a decision that did not charge the unit is not changed; a wrong cost is an error', async () => {
    const { limiter, consume, left } = setUp(LIST);
    const decision = consume(1);
    expect(await limiter.settle(decision, { tokens: 5 })).toBe(false);
    for (const cost of [{ tokns: 5 }, {}, { tokens: -1 }, { tokens: 0.5 }])
      await expect(limiter.settle(decision, cost)).rejects.toMatchObject({ code: 'invalid_cost' });
    const rejected = consume({ requests: 1, tokens: 5_001 });
    expect(await limiter.settle(rejected, { requests: 5, tokens: 5 })).toBe(false);
    expect(await left()).toMatchObject({ 'all-methods 60000': 2, 'all-methods 60000 tokens': 1_000 });
  });

  it('S37: a receipt settles each unit, also one without requests', async () => {
    const receipts = createReceipts({ secret: 'x'.repeat(32) });
    const { limiter, consume, left } = setUp(LIST, { receipts });
    const { receipt } = consume({ requests: 1, tokens: 800 });
    expect(await limiter.settle(receipt, { tokens: 100 })).toBe(true);
    expect(await limiter.settle(receipt, { tokens: 5 })).toBe(false);
    expect(await left()).toMatchObject({ 'all-methods 60000': 2, 'all-methods 60000 tokens': 900 });
    expect(await limiter.refund(receipt)).toBe(true);
    expect(await left()).toMatchObject({ 'all-methods 60000': 3, 'all-methods 60000 tokens': 900 });
    const tokens = consume({ tokens: 400 });
    expect(await limiter.settle(tokens.receipt, 7)).toBe(false);
    expect(await limiter.settle(tokens.receipt, { tokens: 300 })).toBe(true);
    expect(await limiter.settle(tokens, { tokens: 0 })).toBe(false);
    expect(await left()).toMatchObject({ 'all-methods 60000 tokens': 600 });
  });
});

describe('S33: other commands', () => {
  it('S35: a penalty charges the named units', async () => {
    const { limiter, left } = setUp(LIST);
    const windows = await limiter.charge({ account: 'a', cost: { tokens: 1_200 } });
    expect(windows.map(({ remaining }) => remaining)).toEqual([3, 0, 3_800]);
    await limiter.charge({ account: 'a' });
    expect(await left()).toMatchObject({ 'all-methods 60000': 2 });
    await expect(setUp(['5 tokens/1m']).limiter.charge({ account: 'a' })).rejects.toThrow('must name a unit');
  });

  it('S14: a reset of a route forgets its units, and a reset of an account all', async () => {
    const { limiter, consume, left } = setUp(LAYERED);
    const [chat, other] = [await left('POST /chat'), await left('GET /x')];
    const fill = () => {
      for (const route of ['POST /chat', 'GET /x']) consume({ requests: 1, tokens: 100 }, route);
    };
    fill();
    await limiter.reset({ account: 'a', route: 'POST /chat' });
    expect([await left('POST /chat'), await left('GET /x')]).toEqual([chat, expect.not.objectContaining(other)]);
    fill();
    await limiter.reset({ route: 'POST /chat' });
    expect(await left('POST /chat')).toEqual(chat);
    await limiter.reset({ account: 'a' });
    expect(await left('GET /x')).toEqual(other);
  });

  it.each([
    ['the windows of a route', LAYERED, { tokens: 1 }],
    ['the windows of requests', LAYERED, 1],
    ['windows that all routes share', { allMethods: { windows: ['9 tokens/1m'], scope: 'account' } }, { tokens: 1 }],
    ['a list', LIST, { tokens: 1 }],
  ] as [string, Limits, Cost][])('S21: a block of a route holds for %s', async (_, limits, cost) => {
    const { clock, limiter, consume } = setUp(limits);
    await limiter.block({ account: 'a', route: 'POST /chat' }, { forMs: 5_000, reason: 'why' });
    const blocked = consume(cost, 'POST /chat');
    expect(blocked).toMatchObject({ accepted: false, blocked: { forMs: 5_000, reason: 'why' }, shown: undefined });
    expect(consume(cost, 'GET /x').accepted).toBe(true);
    await limiter.unblock({ account: 'a', route: 'POST /chat' });
    expect(consume(cost, 'POST /chat').accepted).toBe(true);
    await limiter.block({ account: 'a' }, { forMs: 5_000 });
    expect(consume(cost, 'GET /x')).toMatchObject({ accepted: false, blocked: { forMs: 5_000 } });
    clock.advance(5_000);
    expect(consume(cost, 'GET /x').accepted).toBe(true);
  });

  it('S36: a fresh start of a route forgets its units', async () => {
    const { limiter, consume, left } = setUp(LAYERED);
    const before = await left('POST /chat');
    consume({ requests: 1, tokens: 100 }, 'POST /chat');
    await limiter.block({ account: 'a', route: 'POST /chat' }, { forMs: 1, reset: true });
    expect(await left('POST /chat')).toEqual(before);
  });

  it('S14: the usage shows the windows of each unit, those of all routes once', async () => {
    const limits: Limits = {
      allMethods: { windows: ['10/1m', '1000 tokens/1m'], scope: 'account' },
      routes: { 'POST /chat': ['500 tokens/1m'] },
    };
    const { limiter, consume } = setUp(limits);
    consume({ requests: 1, tokens: 100 }, 'POST /chat');
    consume({ requests: 1, tokens: 50 }, 'GET /x');
    const { routes, shared } = await limiter.usage({ account: 'a' });
    expect(routes).toEqual([
      { route: 'POST /chat', windows: [expect.objectContaining({ max: 500, remaining: 400, unit: 'tokens' })] },
    ]);
    expect(shared.map(({ max, remaining, unit }) => [max, remaining, unit])).toEqual([
      [10, 8, undefined],
      [1_000, 850, 'tokens'],
    ]);
  });

  it('S31: a group can count units, too', async () => {
    const { limiter } = setUp({
      allMethods: { windows: ['9/1m'], scope: 'account' },
      groups: { key: ['100 tokens/1m'] },
    });
    const consume = (tokens: number, account = 'a') =>
      limiter.consumeSync({ account, route: 'r', cost: { requests: 1, tokens }, groups: { key: 'k' } });
    expect(consume(60)).toMatchObject({ accepted: true });
    const rejected = consume(60, 'b');
    expect(rejected).toMatchObject({ accepted: false, rejectedBy: 'key', shown: { unit: 'tokens', group: 'key' } });
    expect(await limiter.peek({ account: 'b', route: 'r' })).toMatchObject([{ remaining: 9 }]);
  });
});

it('HG_UNIT_NEVER_SEEN: a unit that none of the first 1,000 requests names', () => {
  const warningsOf = (cost: Cost) => {
    const warnings: unknown[] = [];
    const logger = (_: string, error?: unknown) => warnings.push((error as { code?: unknown }).code);
    const limiter = createLimiter({ limits: ['9/1m', '9 tokens/1m'], logger });
    for (let i = 0; i < 1_000; i++) void limiter.consumeSync({ account: `a${i}`, cost }).accepted;
    return warnings;
  };
  expect(warningsOf(1)).toEqual(['HG_UNIT_NEVER_SEEN']);
  expect(warningsOf({ requests: 1, tokens: 1 })).toEqual([]);
});
