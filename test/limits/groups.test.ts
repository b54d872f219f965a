/** S31: requests that count for groups beside their account. */
import { expect, it } from 'vitest';
import { createLimiter } from '../../src/index.ts';
import { createReceipts, groupAccount } from '../../src/limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

const SECRET = 'a secret of more than 32 characters.';

function start(limits: Parameters<typeof createLimiter>[0]['limits']) {
  const clock = createFakeClock(1_000_000);
  const store = createMemoryStore({ clock });
  const limiter = createLimiter({ store, limits, logger: false, receipts: createReceipts({ secret: SECRET }) });
  const used = async (account: string, route = 'r'): Promise<unknown> =>
    (await limiter.peek({ account, route })).map(({ max, remaining, startedAt }) => [max - remaining, startedAt]);
  return { clock, store, limiter, used };
}

const LIMITS = {
  default: ['5/1m', '9/1d'],
  groups: { customer: ['3/1h'], key: { allMethods: ['2/1s'], routes: { hot: ['1/1s'] } } },
} as const;
/** A count, and its start. */
const ONE = [1, 1_000_000];
const CUSTOMER = groupAccount('customer', 'cus_7');

it('S31: a request is charged to its account and to each of its groups, with the route of the request', async () => {
  const { limiter, used } = start(LIMITS);
  const groups = { customer: 'cus_7', key: 'k' };
  const decision = await limiter.consume({ account: 'a', route: 'r', groups });
  expect(decision).toMatchObject({ accepted: true, rejectedBy: undefined, account: 'a', route: 'r', cost: 1 });
  expect(decision.shown).toMatchObject({ max: 9, remaining: 8 });
  expect(decision.trace.map(({ max, group }) => [max, group])).toEqual([
    [5, undefined],
    [9, undefined],
    [3, 'customer'],
    [2, 'key'],
  ]);
  expect(decision.windowSet.windows.map(({ max, group }) => [max, group])).toEqual(
    decision.trace.map(({ max, group }) => [max, group]),
  );
  expect(limiter.consumeSync({ account: 'b', route: 'hot', groups })).toMatchObject({ accepted: true });
  expect(await used(CUSTOMER)).toEqual([[2, 1_000_000]]);
  expect(await used(groupAccount('key', 'k'), 'hot')).toEqual([
    [1, 1_000_000],
    [1, 1_000_000],
  ]);
});

it.each([
  ['the account', { account: 'full', groups: { customer: 'cus_7', key: 'k' } }, 'account'],
  ['a group', { account: 'a', groups: { customer: 'cus_full', key: 'k' } }, 'customer'],
  ['the last group', { account: 'a', groups: { customer: 'cus_7', key: 'full' } }, 'key'],
])('S31: a request that %s rejects leaves every counter as it was, its start included', async (_, request, subject) => {
  const { clock, limiter, used } = start(LIMITS);
  const full = { full: 5, [groupAccount('customer', 'cus_full')]: 3, [groupAccount('key', 'full')]: 2 };
  for (const [account, cost] of Object.entries(full)) await limiter.charge({ account, route: 'r', cost });
  await limiter.consume({ account: 'a', route: 'r', groups: { customer: 'cus_7' } });
  clock.advance(10);
  const accounts = ['a', 'full', CUSTOMER, groupAccount('key', 'k'), ...Object.keys(full)];
  const before = await Promise.all(accounts.map((account) => used(account)));
  for (const decide of [limiter.consume.bind(limiter), limiter.consumeSync.bind(limiter)]) {
    const decision = await decide({ ...request, route: 'r' });
    expect(decision).toMatchObject({ accepted: false, rejectedBy: subject, shown: { remaining: 0 } });
    expect(decision.shown?.group).toBe(subject === 'account' ? undefined : subject);
    expect(decision.trace.at(-1)).toEqual(decision.shown);
    expect(await limiter.refund(decision)).toBe(false);
    expect(await limiter.settle(decision.receipt, 3)).toBe(false);
  }
  expect(await Promise.all(accounts.map((account) => used(account)))).toEqual(before);
});

it('S31: the trace of a rejection shows the windows before it without the charge that was undone', async () => {
  const { clock, limiter } = start(LIMITS);
  await limiter.charge({ account: CUSTOMER, route: 'r', cost: 3 });
  await limiter.charge({ account: 'a', route: 'other', cost: 1 });
  clock.advance(10);
  const { trace } = await limiter.consume({ account: 'a', route: 'r', groups: { customer: 'cus_7' } });
  expect(trace).toMatchObject([
    { max: 5, remaining: 4, resetMs: 59_990, startedAt: 1_000_000 },
    { max: 9, remaining: 8, startedAt: 1_000_000 },
    { max: 3, remaining: 0, resetMs: 3_599_990, group: 'customer' },
  ]);
  const fresh = await limiter.consume({ account: 'b', route: 'r', groups: { customer: 'cus_7' } });
  expect(fresh.trace[0]).toEqual({
    ...{ limit: 'all-methods', max: 5, remaining: 5, resetMs: 60_000, durationMs: 60_000, startedAt: undefined },
  });
});

it('S13, S31: a settlement and a receipt correct every part once, also in another process', async () => {
  const { limiter, used } = start(LIMITS);
  const request = { account: 'a', route: 'r', groups: { customer: 'cus_7' }, cost: 2 };
  const first = await limiter.consume(request);
  const { receipt } = first;
  expect([await limiter.settle(receipt, 1), await limiter.settle(first, 0)]).toEqual([true, false]);
  expect([await used('a'), await used(CUSTOMER)]).toEqual([[ONE, ONE], [ONE]]);
  const second = await limiter.consume(request);
  expect([await limiter.refund(second), await limiter.refund(second), await limiter.settle(second.receipt, 5)]).toEqual(
    [true, false, false],
  );
  expect([await used('a'), await used(CUSTOMER)]).toEqual([[ONE, ONE], [ONE]]);
});

it('S31: charge, block, reset, usage and adjust of a group name its account', async () => {
  const { limiter, used } = start(LIMITS);
  const request = { account: 'a', route: 'r', groups: { customer: 'cus_7' } };
  await limiter.block({ account: CUSTOMER }, { forMs: 1_000, reason: 'unpaid' });
  const blocked = await limiter.consume(request);
  expect(blocked).toMatchObject({ rejectedBy: 'customer', blocked: { reason: 'unpaid' }, shown: undefined });
  expect(await used('a')).toEqual([
    [0, undefined],
    [0, undefined],
  ]);
  await limiter.unblock({ account: CUSTOMER });
  await limiter.charge({ account: CUSTOMER, route: 'r', cost: 3 });
  expect(await limiter.consume(request)).toMatchObject({ accepted: false, rejectedBy: 'customer' });
  limiter.adjust({ account: CUSTOMER }, ['4/1h']);
  expect(await limiter.consume(request)).toMatchObject({ accepted: true });
  expect(await limiter.usage({ account: CUSTOMER })).toMatchObject({ shared: [{ max: 4, remaining: 0 }] });
  await limiter.reset({ account: CUSTOMER });
  limiter.adjust({ account: CUSTOMER }, 'recommended');
  expect(await limiter.peek({ account: CUSTOMER, route: 'r' })).toMatchObject([{ max: 3, remaining: 3 }]);
});

it('S31: a function returns the limits of groups, also as a promise, and is called with the group as its account', async () => {
  const asked: string[] = [];
  const { limiter, used } = start(async ({ account }) => {
    asked.push(account);
    return { allMethods: ['5/1m'], groups: { customer: account === CUSTOMER ? ['1/1h'] : ['9/1h'] } };
  });
  const request = { account: 'a', route: 'r', groups: { customer: 'cus_7' } };
  expect((await limiter.consume(request)).accepted).toBe(true);
  expect(asked).toEqual(['a', CUSTOMER]);
  expect(await limiter.consume(request)).toMatchObject({ accepted: false, rejectedBy: 'customer', shown: { max: 1 } });
  expect(await used('a')).toEqual([[1, 1_000_000]]);
  expect(() => limiter.consumeSync(request)).toThrow('not a promise of them');
  await expect(limiter.consume({ ...request, groups: { other: 'x' } })).rejects.toThrow(
    'groups: names an unknown group (limits.groups has "customer"), got "other"',
  );
});

it.each([
  [{ groups: { custmer: 'x' } }, 'groups: names an unknown group (limits.groups has "customer", "key"), got "custmer"'],
  [{ groups: { customer: undefined } }, 'groups.customer must be a string, got undefined: leave a group out if it'],
  [{ groups: ['cus_7'] }, 'groups: must be an object of ids by the names of groups'],
  [{ groups: { a: '', b: '', c: '', d: '', e: '' } }, 'groups: must be at most 4, got 5'],
  [{ account: CUSTOMER }, 'account must not begin with group:, because limits.groups has groups'],
])('S31: refuses %j, and charges nothing', async (fields, message) => {
  const { limiter, store } = start(LIMITS);
  const request = { account: 'a', route: 'r', ...fields } as never;
  await expect(limiter.consume(request)).rejects.toThrow(message);
  expect(() => limiter.consumeSync(request)).toThrow(message);
  expect(store.stats().keys).toBe(0);
});

it('S31: without groups of limits, an account may begin with group:, and a request with groups is refused', async () => {
  const { limiter } = start(['5/1m']);
  expect((await limiter.consume({ account: 'group:customer:a' })).accepted).toBe(true);
  const request = { account: 'a', groups: { customer: 'b' } };
  await expect(limiter.consume(request)).rejects.toThrow('unknown group (limits.groups has none), got "customer"');
});

it.each([
  [{ groups: { customer: [] } }, 'limits.groups["customer"]: must have a window'],
  [{ groups: { account: ['1/1m'] } }, 'limits.groups: must be 1 to 32 letters, digits, _ and -, begin with a letter'],
  [{ groups: { 'a:b': ['1/1m'] } }, 'limits.groups: must be 1 to 32 letters'],
  [{ groups: { a: { groups: { b: ['1/1m'] } } } }, 'limits.groups["a"].groups: must be beside default, plans'],
])('S31: refuses the limits %j', (groups, message) => {
  expect(() => createLimiter({ limits: { allMethods: ['5/1m'], ...groups } as never })).toThrow(message);
  expect(() => createLimiter({ limits: { default: ['5/1m'], ...groups } as never })).toThrow(message);
});

it('S31: only the limits of every account can have groups', () => {
  const groups = { customer: ['1/1m'] };
  expect(() => createLimiter({ limits: { default: ['5/1m'], plans: { pro: { groups } } } as never })).toThrow(
    'limits.plans["pro"].groups: must be beside default',
  );
});
