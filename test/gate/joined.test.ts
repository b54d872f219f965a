/** S28 to S31: lanes, requests in flight, cooldown and groups in one gate. */
import { beforeEach, expect, it, vi } from 'vitest';
import type { GateEntry, Passage } from '../../src/gate/index.ts';
import { createGate, createLimiter, type GateOptions, type Limits } from '../../src/index.ts';
import { groupAccount } from '../../src/limits/index.ts';
import { createMemoryStore } from '../../src/stores/memory/limits.ts';
import type { LimitStore } from '../../src/stores.ts';
import { createFakeClock } from '../../src/testing/fake-clock.ts';

interface Request {
  readonly account: string;
  readonly lane?: string;
}

const clock = createFakeClock(1_000_000);

beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => clock.now() - performance.timeOrigin);
  return () => vi.restoreAllMocks();
});

const LIMITS: Limits = {
  default: { allMethods: { windows: ['100/1m'], inFlight: 4 } },
  groups: { customer: { allMethods: { windows: ['20/1m'], inFlight: 6 } } },
  lanes: { bulk: 0.5 },
};

const groups = () => ({ customer: 'cus_1' });

function gateOf(options: Partial<GateOptions<Request>> = {}) {
  const limiter = createLimiter({ store: createMemoryStore({ clock }), limits: LIMITS, validate: false });
  const gate = createGate<Request>({
    limiter,
    account: ({ account }) => account,
    route: () => 'r',
    lane: ({ lane }) => lane,
    groups,
    cooldown: true,
    logger: false,
    validate: false,
    ...options,
  });
  const enter = (account = 'a', lane?: string) =>
    gate.enter({ account, ...(lane !== undefined && { lane }) }) as GateEntry;
  const passage = (account?: string, lane?: string): Passage => {
    const entry = enter(account, lane);
    if (entry.kind !== 'proceed') throw new Error(`answered ${entry.reply.status}: ${entry.reply.body}`);
    return entry;
  };
  const status = (account?: string, lane?: string): number => {
    const entry = enter(account, lane);
    return entry.kind === 'answer' ? entry.reply.status : 200;
  };
  const used = async (account: string) => {
    const [window] = await limiter.peek({ account, route: 'r' });
    return (window?.max ?? 0) - (window?.remaining ?? 0);
  };
  return { limiter, passage, status, enter, used };
}

const answer = (status: number, fields: Record<string, string> = {}) => ({
  status,
  header: (name: string) => fields[name.toLowerCase()],
});

it('S28, S29: a lane has its share of the requests in flight, too, of the account and of its groups', async () => {
  const { status, passage, used } = gateOf();
  const bulk = [passage('a', 'bulk'), passage('a', 'bulk')];
  expect(status('a', 'bulk')).toBe(429);
  passage('b', 'bulk');
  // Three of the customer's six are the share of the lane.
  expect(status('c', 'bulk')).toBe(429);
  expect([status('a'), status('a'), status('a')]).toEqual([200, 200, 429]);
  expect(status('c')).toBe(200);
  expect([status('c'), status('d')]).toEqual([429, 429]);
  // A rejected request charged nothing: two of a's bulk, one of b, two of a, one of c.
  expect([await used('a'), await used(groupAccount('customer', 'cus_1'))]).toEqual([4, 6]);
  for (const each of bulk) await each.end?.();
  expect([status('c', 'bulk'), status('d')]).toEqual([429, 200]);
});

it('S29, S30: a request that another one tries for gives its place and its charge back', async () => {
  const { passage, status, used, limiter } = gateOf();
  const first = passage();
  first.settle(answer(429, { 'retry-after': '3' }));
  await first.end?.();
  expect(status()).toBe(429);
  clock.advance(3_000);
  const before = await used(groupAccount('customer', 'cus_1'));
  const probe = passage();
  for (let i = 0; i < 20; i++) expect(status()).toBe(429);
  expect([await used('a'), await used(groupAccount('customer', 'cus_1'))]).toEqual([2, before + 1]);
  probe.settle(answer(200));
  await probe.end?.();
  const all = [passage(), passage(), passage(), passage()];
  expect(status()).toBe(429);
  for (const each of all) await each.end?.();
  expect(await limiter.release(all[0]?.decision as never)).toBe(false);
  expect(status()).toBe(200);
});

it('S29, S30: also if both asked a distant store at the same time', async () => {
  const inner = createMemoryStore({ clock });
  const later =
    <Args extends unknown[], Result>(call: (...args: Args) => Result) =>
    async (...args: Args): Promise<Result> => {
      await new Promise(setImmediate);
      return call.apply(inner, args);
    };
  const names = ['consume', 'peek', 'settle', 'undo', 'reset', 'block', 'unblock', 'blocked', 'cooldown'];
  const methods = [...names, 'holdSlot', 'releaseSlot'].map((name) => [name, later(inner[name as 'consume'])]);
  const store = { synchronous: false, ...Object.fromEntries(methods) } as LimitStore;
  const limiter = createLimiter({ store, limits: LIMITS, validate: false });
  const gate = createGate<Request>({ limiter, account: () => 'a', route: () => 'r', groups, cooldown: true });
  const enter = async (): Promise<GateEntry> => gate.enter({ account: 'a' });
  const passages = async (times: number): Promise<Passage[]> => {
    const entries = await Promise.all(Array.from({ length: times }, enter));
    return entries.filter((entry) => entry.kind === 'proceed');
  };
  const [first] = await passages(1);
  first?.settle(answer(429, { 'retry-after': '3' }));
  await first?.end?.();
  clock.advance(3_000);
  const [probe, ...others] = await passages(4);
  expect(others).toEqual([]);
  probe?.settle(answer(200));
  await probe?.end?.();
  await vi.waitFor(async () => {
    const all = await passages(5);
    for (const each of all) await each.end?.();
    expect(all.length).toBe(4);
  });
});

it('S21, S31: a block of a group rejects its accounts, takes no slot and charges none of them', async () => {
  const { passage, enter, used, limiter } = gateOf();
  await limiter.block({ account: groupAccount('customer', 'cus_1') }, { forMs: 60_000, reason: 'unpaid' });
  for (let i = 0; i < 10; i++) {
    const entry = enter();
    if (entry.kind !== 'answer') throw new Error('the request was let through');
    expect(entry.decision).toMatchObject({ rejectedBy: 'customer', blocked: { reason: 'unpaid' } });
  }
  await limiter.unblock({ account: groupAccount('customer', 'cus_1') });
  expect(await used('a')).toBe(0);
  for (let i = 0; i < 4; i++) passage();
});
